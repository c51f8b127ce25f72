//! `docs/install.md` as a reader follows it: the commands of its console blocks in their order, by a shell, on a real API server.
//!
//! What is left out, and why, stands in `pages::ONLY_PARSED`.

use super::{pages, reader::Reader};
use crate::{
    serve::{block, until},
    support::{
        build,
        controlplane::{ControlPlane, absent},
        installed::{self, ACCOUNT, Replica, free_address},
    },
};

/// Waits for Berth, which the lines before have just installed.
fn needs_berth(line: &str) -> bool {
    line.contains("get lease") || line.contains("--dry-run=server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_install_page_do_what_it_shows_in_their_order() {
    let kubectl = match build::kubectl() {
        Ok(program) => program,
        Err(reason) => return absent("kubectl, which Go builds", &reason),
    };
    let Some(plane) = ControlPlane::start(installed::options()).await else { return };
    let address = free_address();
    let reader = Reader::new(&plane, &[&kubectl], address);
    let files =
        ["namespace", "nodes", "pods"].map(|name| format!("-f examples/cluster/{name}.yaml")).join(" ");
    let output = reader.run(&format!("kubectl apply {files}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/install.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines: Vec<_> = block::lines(&page).into_iter().zip(block::calls(&page)).collect();
    let mut berth = None;
    let mut ran = 0;
    for (line, call) in lines.iter().filter(|(line, _)| !pages::is_only_parsed(line)) {
        if needs_berth(line) {
            berth.get_or_insert_with(|| Replica::start_as(&plane, ACCOUNT, "berth", address, &[]));
            until(line, async || reader.fault(line, call).is_none().then_some(())).await;
        } else {
            assert_eq!(reader.fault(line, call), None);
        }
        ran += 1;
    }
    assert!(ran > 15, "only {ran} commands were run");
}
