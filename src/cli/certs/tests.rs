//! What ends up in a folder, and what is left alone there.

use std::os::unix::fs::PermissionsExt as _;

use clap::Parser;
use tempfile::TempDir;

use super::*;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    args: CertsArgs,
}

fn args(flags: &[&str]) -> Result<CertsArgs, clap::Error> {
    Program::try_parse_from([&["certs"], flags].concat()).map(|program| program.args)
}

fn start() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn contents(dir: &Path) -> Vec<String> {
    let names = ["ca.crt", "ca.key", "tls.crt", "tls.key"];
    names.map(|name| fs::read_to_string(dir.join(name)).unwrap()).into()
}

async fn run_in(dir: &Path, now: Timestamp) -> anyhow::Result<()> {
    run(args(&["--dir", dir.to_str().unwrap(), "--also", "127.0.0.1"]).unwrap(), now).await
}

#[tokio::test]
async fn a_folder_gets_four_files_and_only_its_owner_reads_the_keys() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("certs");
    run_in(&dir, start()).await.unwrap();
    assert_eq!(contents(&dir).len(), fs::read_dir(&dir).unwrap().count(), "nothing is left over");
    for key in ["ca.key", "tls.key"] {
        let mode = fs::metadata(dir.join(key)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
}

#[tokio::test]
async fn a_second_run_changes_nothing_until_renewal_is_due() {
    let home = TempDir::new().unwrap();
    run_in(home.path(), start()).await.unwrap();
    let first = contents(home.path());
    run_in(home.path(), start() + days(100)).await.unwrap();
    assert_eq!(contents(home.path()), first);
    run_in(home.path(), start() + days(300)).await.unwrap();
    let renewed = contents(home.path());
    assert_eq!(renewed[..2], first[..2], "the authority is good for longer");
    assert_ne!(renewed[2..], first[2..]);
}

#[tokio::test]
async fn a_folder_that_lacks_a_file_is_left_alone() {
    let home = TempDir::new().unwrap();
    run_in(home.path(), start()).await.unwrap();
    fs::remove_file(home.path().join("ca.key")).unwrap();
    let error = run_in(home.path(), start()).await.unwrap_err();
    let error = error.downcast_ref();
    assert!(matches!(error, Some(CertsError::Incomplete { path }) if path.ends_with("ca.key")), "{error:?}");
    assert!(!home.path().join("ca.key").exists());
}

#[test]
fn one_place_must_be_named_and_a_secret_by_both_its_names() {
    assert!(args(&[]).is_err());
    assert!(args(&["--dir", "a", "--secret", "n/s"]).is_err());
    assert!(args(&["--secret", "s"]).is_err());
    assert!(args(&["--dir", "a", "--days", "0"]).is_err());
    let expected = SecretName { namespace: "n".to_owned(), name: "s".to_owned() };
    assert_eq!(args(&["--secret", "n/s"]).unwrap().secret, Some(expected));
}
