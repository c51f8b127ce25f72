//! `berth top --watch`: the terminal, and the cluster that is read again and again. What is drawn and what keys do is decided elsewhere.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use crossterm::event::{Event, EventStream};
use futures::StreamExt as _;
use ratatui::DefaultTerminal;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    TopArgs,
    screen::{KeyEffect, TopReading, TopScreen},
    usage::ClusterUsage,
};
use crate::{
    cli::{CommandAnswer, inspect::cluster::InspectedCluster},
    cluster::Clock,
    config::Config,
};

/// A terminal that is given back as it was, whatever ends the program.
struct FullScreen(DefaultTerminal);

impl FullScreen {
    fn enter() -> Result<Self> {
        Ok(Self(ratatui::try_init().context("can't take the terminal over")?))
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// What is used, and what was left out of it.
type ClusterReading = Result<(ClusterUsage, Vec<String>)>;

/// Shows what is used until it is told to end.
pub(super) async fn run(args: TopArgs, config: Config) -> Result<CommandAnswer> {
    let Some(detail) = args.output.detail() else {
        bail!("--watch shows a screen: it can't be given with -o json or -o yaml");
    };
    if args.cluster.file.iter().any(|file| file == Path::new("-")) {
        bail!("--watch reads keys from standard input, so -f can't be `-`");
    }
    if !stdin().is_terminal() || !stdout().is_terminal() {
        bail!("--watch needs a terminal: standard input or standard output is none");
    }
    let cluster = Arc::new(args.cluster.inspected().await?);
    let mut signals = Signals::new()?;
    let mut screen = TopScreen::new(args.view, args.sort_by, detail, args.glyphs());
    let (args, config) = (Arc::new(args), Arc::new(config));
    let mut reading = TopReading::default();
    let mut terminal = FullScreen::enter()?;
    let mut events = EventStream::new();
    let mut reads: JoinSet<Result<ClusterReading>> = JoinSet::new();
    let mut next = Instant::now();
    loop {
        terminal.0.draw(|frame| screen.draw(frame, &reading)).context("can't draw on the terminal")?;
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => {
                    if screen.press(key) == KeyEffect::Quit {
                        return Ok(CommandAnswer::Yes);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error).context("can't read the terminal"),
                None => return Ok(CommandAnswer::Yes),
            },
            () = signals.end() => return Ok(CommandAnswer::Yes),
            () = sleep_until(next), if reads.is_empty() => {
                reads.spawn(read(Arc::clone(&cluster), Arc::clone(&args), Arc::clone(&config)));
            }
            Some(read) = reads.join_next() => {
                take(&mut reading, read.context("what reads the cluster has ended")??);
                next = Instant::now() + args.interval;
            }
        }
    }
}

/// Takes in what was read. What could be read before stays on the screen.
fn take(reading: &mut TopReading, read: ClusterReading) {
    match read {
        Ok((usage, warnings)) => {
            let (at, trouble) = (Some(Clock::System.now()), warnings.into_iter().next());
            *reading = TopReading { usage: Some(usage), at, trouble };
        }
        Err(error) => reading.trouble = Some(format!("{error:#}")),
    }
}

/// Reads the cluster once. The error outside is one after which nothing can be read again.
async fn read(
    cluster: Arc<InspectedCluster>,
    args: Arc<TopArgs>,
    config: Arc<Config>,
) -> Result<ClusterReading> {
    let (documents, left_out) = match cluster.cards().await {
        Ok(cards) => cards,
        Err(error) => return Ok(Err(error)),
    };
    let (answer, answered) = oneshot::channel();
    // Nobody waits for this thread when the program ends, as the runtime would for one of its own.
    let count = move || drop(answer.send(args.usage(&documents, &config)));
    thread::Builder::new().name("usage".to_owned()).spawn(count).context("can't start a thread")?;
    let usage = answered.await.context("what counts the cards has ended")?;
    Ok(usage.map(|(usage, warnings)| (usage, left_out.into_iter().chain(warnings).collect())))
}

/// The signals that end a program.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> Result<Self> {
        let of = |kind| signal(kind).context("can't wait for signals");
        Ok(Self([of(SignalKind::terminate())?, of(SignalKind::interrupt())?, of(SignalKind::hangup())?]))
    }

    /// Waits for one of them.
    async fn end(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// How long to wait between two readings.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let time =
        crate::config::duration::parse(text).filter(|time| *time >= jiff::SignedDuration::from_millis(100));
    time.map(jiff::SignedDuration::unsigned_abs)
        .ok_or_else(|| "not a time of at least 100ms, such as `2s`".to_owned())
}
