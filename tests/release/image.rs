//! That the Dockerfile's build stage finds what it needs: `.ci/image` runs its steps, here with a cargo that reads the manifest and
//! compiles nothing. `.ci/run` has cargo check what they copy, and builds the same program as a release.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use super::path;

/// The platform of the compiler.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// A program `cargo` that has the real one read the manifest, as a build does first, and puts the tested program where a build would.
fn write_cargo(folder: &Path) {
    let (cargo, berth) = (env!("CARGO"), env!("CARGO_BIN_EXE_berth"));
    // Unlike `cargo metadata`, it fails where a target that the manifest names has no file. One platform: only its crates are there.
    let script = format!(
        "#!/bin/sh\nset -e\n'{cargo}' fetch --quiet --offline --locked --target {}\n\
         echo read \"$*\"\nmkdir -p target/release\ncp '{berth}' target/release/berth\n",
        host()
    );
    let file = folder.join("cargo");
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_build_stage_of_the_dockerfile_has_every_target_and_makes_a_program_that_starts() {
    let (programs, stage) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_cargo(programs.path());
    let search = std::env::var_os("PATH").unwrap();
    let output = Command::new(path(".ci/image"))
        .arg(stage.path())
        .env("PATH", format!("{}:{}", programs.path().display(), search.display()))
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    let built = printed.lines().filter(|line| line.starts_with("read build --release --locked")).count();
    assert_eq!(built, 2, "{printed}");
    assert!(printed.contains(concat!("berth ", env!("CARGO_PKG_VERSION"))), "{printed}");
    assert!(stage.path().join("src/lib.rs").metadata().unwrap().len() > 0, "the sources were copied");
}
