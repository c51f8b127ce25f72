//! The extender in front of the loop that binds: kube-scheduler chooses the node, the one writer the cards.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;

use super::{Options, leader::leader};
use crate::{
    cluster::{
        BinderView, Handoff, Leadership,
        extender::{ExtenderChannel, NotLeading},
    },
    extender,
    object::Pod,
    scheduling::{Claim, Demand, plan::extension::standings},
};

/// What the verbs are answered by.
pub(super) fn extender(options: &Options, desk: &ExtenderChannel, handoff: &Handoff) -> extender::Extender {
    let asked = ExtenderBackend {
        desk: desk.clone(),
        views: handoff.views(),
        client: options.client.clone(),
        leadership: options.leadership.clone(),
    };
    let (judge, bind, preempt) = (asked.clone(), asked.clone(), asked);
    extender::Extender {
        judge: Arc::new(move |pod, names| {
            let asked = judge.clone();
            Box::pin(async move {
                let view = asked.view().await?;
                Ok(standings(&demand(&view, &pod)?, &view.outlook, &names))
            })
        }),
        bind: Arc::new(move |pod, node| {
            let asked = bind.clone();
            Box::pin(async move {
                match asked.desk.bind(pod, node).await {
                    Ok(bound) => bound,
                    Err(NotLeading) => Err(asked.not_leading().await),
                }
            })
        }),
        preempt: Arc::new(move |pod, candidates| {
            let asked = preempt.clone();
            Box::pin(async move {
                let demand = demand(&asked.view().await?, &pod)?;
                let candidates = candidates.into_iter().map(|(node, victims)| {
                    (node.as_str().into(), victims.iter().map(|uid| uid.as_str().into()).collect())
                });
                match asked.desk.preempt(demand, candidates.collect()).await {
                    Ok(helps) => Ok(helps),
                    Err(NotLeading) => Err(asked.not_leading().await),
                }
            })
        }),
    }
}

#[derive(Clone)]
struct ExtenderBackend {
    desk: ExtenderChannel,
    views: watch::Receiver<Option<BinderView>>,
    client: Client,
    leadership: Leadership,
}

impl ExtenderBackend {
    /// The cluster as the loop has it now; on a replica that does not lead, as it was seen last.
    async fn view(&self) -> Result<BinderView, String> {
        if let Ok(view) = self.desk.look().await {
            return Ok(view);
        }
        let seen = self.views.borrow().clone();
        seen.ok_or_else(|| "this replica has not listed the cluster yet".to_owned())
    }

    /// Which replica to ask instead.
    async fn not_leading(&self) -> String {
        match leader(&self.client, &self.leadership).await {
            Some(holder) => format!("{NotLeading}; the leader is {holder}"),
            None if self.leadership == Leadership::Alone => NotLeading.to_string(),
            None => format!("{NotLeading}, and no other does yet"),
        }
    }
}

/// What the pod asks for. It is read as a pod that waits, whatever its scheduler is called.
fn demand(view: &BinderView, pod: &Pod) -> Result<Demand, String> {
    let (info, _) = view.reader.pod(pod);
    match (info.demand(), info.claim) {
        (Some(demand), _) => Ok(demand),
        (None, Claim::Unreadable(why)) => Err(why.0),
        (None, _) => Err(format!(
            "pod {} is not Berth's to bind: its schedulerName is not that of Berth's settings, or it is gated, bound or ending",
            info.key
        )),
    }
}
