//! The web page of the demo: plain HTTP on this machine, for whoever sits at it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
    sync::Arc,
};

use anyhow::Context;
use axum::{Router, response::Redirect, routing::get};
use tokio::{net::TcpListener, task::spawn_blocking};

use super::DemoArgs;
use crate::{
    api::{
        self, Api,
        page::{self, UI},
    },
    cli::output,
};

/// Who opens an address for the user of this machine.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// The page, with a port that is its own.
pub(super) struct DemoPage {
    listener: TcpListener,
    opens: bool,
}

impl DemoPage {
    /// Takes the port.
    pub(super) async fn bind(args: &DemoArgs) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("listen on {address} for the web page"))?;
        Ok(Self { listener, opens: !args.no_open && has_screen() })
    }

    /// Serves the page and the API that it asks for as long as this is awaited, and opens it in a browser where there is one.
    pub(super) async fn show(self, api: Arc<Api>) -> anyhow::Result<()> {
        let address = format!("http://{}{UI}", self.listener.local_addr()?);
        output::remark(&format!("The cluster in a browser, where pods now arrive and end: {address}"));
        let opened = async {
            if self.opens {
                let asked = address.clone();
                if let Err(error) = spawn_blocking(move || open(&asked)).await? {
                    output::remark(&format!("No browser opens by itself: {OPENER}: {error}"));
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            ended = axum::serve(self.listener, routes(api)) => Ok(ended?),
            failed = opened => failed,
        }
    }
}

/// The page, and beside it what it asks.
fn routes(api: Arc<Api>) -> Router {
    page::router().merge(api::router(api)).route("/", get(|| async { Redirect::temporary(UI) }))
}

/// Whether a browser would have where to appear.
fn has_screen() -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some())
}

fn open(address: &str) -> std::io::Result<()> {
    let quiet = Stdio::null;
    let status = Command::new(OPENER).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}
