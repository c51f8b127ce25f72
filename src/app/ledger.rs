//! The ledger's page: the binder's loop makes it, for whom the API server allows to get the path.
//!
//! It checks no permission itself: `access` does.

use std::sync::Arc;

use super::{
    Options,
    access::{self, in_time},
    leader::leader,
};
use crate::{
    cluster::{
        binder::questions::{NoAnswer, Questions},
        report::ledger::LedgerQuestion,
    },
    webhook::page::{
        bearer::Denial,
        debug::{Debug, LEDGER},
    },
};

/// What the path needs.
pub(super) fn debug(options: &Options, questions: Questions<LedgerQuestion>) -> Debug {
    let (client, leadership) = (options.client.clone(), options.leadership.clone());
    let leases = client.clone();
    Debug {
        access: access::to(LEDGER, client),
        page: Arc::new(move || {
            let (questions, client, leadership) = (questions.clone(), leases.clone(), leadership.clone());
            Box::pin(in_time(async move {
                match questions.page().await {
                    Ok(page) => Ok(serde_json::to_vec(&page).expect("a ledger has string keys only")),
                    Err(NoAnswer::NotLeading) => {
                        Err(Denial::Elsewhere { leader: leader(&client, &leadership).await })
                    }
                    Err(error @ NoAnswer::Busy) => Err(Denial::Unavailable(error.to_string())),
                }
            }))
        }),
    }
}
