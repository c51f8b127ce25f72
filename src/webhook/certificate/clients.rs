//! The authority of client certificates, which decides which clients may ask for reviews; it is read from a file that may change.
//!
//! It keeps the TLS settings in step with the file. The router decides which paths need a certificate.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{info, warn};

use super::tls::{CertificateError, Certificates};

/// A file of PEM certificates by which clients are known, and the TLS settings that follow it.
#[derive(Debug)]
pub struct ClientAuthority {
    file: PathBuf,
    seen: String,
    certificates: Arc<Certificates>,
    settings: watch::Sender<Arc<ServerConfig>>,
}

impl ClientAuthority {
    /// Reads the file for the first time.
    pub async fn load(
        file: impl Into<PathBuf>,
        certificates: Arc<Certificates>,
    ) -> Result<Self, CertificateError> {
        let file = file.into();
        let seen = read(&file).await?;
        let settings = certificates.server_config_for(&seen, &file.display().to_string())?;
        Ok(Self { file, seen, certificates, settings: watch::Sender::new(settings) })
    }

    /// The TLS settings for new connections. Each change starts a new cache of sessions, so that no client resumes a
    /// session that began under an authority which is no longer trusted.
    pub fn settings(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.settings.subscribe()
    }

    /// Reads the file every `period` and never returns. Content that is not an authority is logged once, and the old authority
    /// stays in force.
    pub async fn follow(mut self, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.refresh().await {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                warn!(%error, source, "can't read the client authority; the old one stays in force");
            }
        }
    }

    async fn refresh(&mut self) -> Result<(), CertificateError> {
        let found = read(&self.file).await?;
        if found == self.seen {
            return Ok(());
        }
        let settings = self.certificates.server_config_for(&found, &self.file.display().to_string());
        self.seen = found;
        self.settings.send_replace(settings?);
        info!(file = %self.file.display(), "the new client authority is in force");
        Ok(())
    }
}

async fn read(file: &PathBuf) -> Result<String, CertificateError> {
    let failed = |source| CertificateError::File { path: file.clone(), source };
    tokio::fs::read_to_string(file).await.map_err(failed)
}
