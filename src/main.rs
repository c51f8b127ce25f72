//! The `berth` program.
fn main() {
    use clap::Parser as _;
    #[derive(clap::Parser)]
    struct C {
        #[command(flatten)]
        d: berth::cli::demo::DemoArgs,
    }
    rustls::crypto::ring::default_provider().install_default().unwrap();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter("warn").init();
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    rt.block_on(berth::cli::demo::run(C::parse().d, berth::config::Config::load(None).unwrap().0)).unwrap();
}
