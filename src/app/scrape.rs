//! What `/metrics` shows of the cluster: asked of the loop that binds, at each scrape.
//!
//! Names nothing and counts nothing itself. A replica that does not lead shows nothing of it: two replicas would count each card twice.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    cluster::{
        binder::questions::{NoAnswer, Questions},
        report::{
            ledger::LedgerQuestion,
            scrape::{SeriesDetail, ShownSeries},
        },
    },
    config::Config,
    webhook::{page::detail::AskedDetail, router::Scrape},
};

/// A scrape does not wait longer for a loop that is at work.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for what is held, and renders it as the settings want it.
pub(super) fn scrape(questions: Questions<LedgerQuestion>, settings: watch::Receiver<Arc<Config>>) -> Scrape {
    Arc::new(move |asked| {
        let asked = asked.map(|asked| match asked {
            AskedDetail::Nodes => SeriesDetail::Nodes,
            AskedDetail::Cards => SeriesDetail::Cards,
            AskedDetail::Pods => SeriesDetail::Pods,
        });
        let (questions, shown) = (questions.clone(), ShownSeries { asked, ..settings.borrow().shown() });
        Box::pin(async move {
            let asked = tokio::time::timeout(PATIENCE, questions.holdings()).await;
            match asked {
                Ok(Ok(holdings)) => Some(holdings?.registry(shown)),
                Ok(Err(NoAnswer::NotLeading)) => None,
                Ok(Err(error @ NoAnswer::Busy)) => {
                    tracing::warn!(%error, "a scrape shows no cards");
                    None
                }
                Err(_) => {
                    tracing::warn!("a scrape shows no cards: no answer within {PATIENCE:?}");
                    None
                }
            }
        })
    })
}
