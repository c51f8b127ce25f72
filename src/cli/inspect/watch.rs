//! `--watch`: the terminal, and the cluster that is read again and again. What is drawn and what keys do is decided elsewhere.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use crossterm::event::{Event, EventStream};
use futures::{StreamExt as _, future::BoxFuture};
use ratatui::DefaultTerminal;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::screen::{KeyEffect, Reading, Screen, Watched};
use crate::{
    cli::{
        CommandAnswer,
        output::{Detail, WideFormat},
    },
    cluster::Clock,
};

/// Whether a command shows a screen.
#[derive(Args, Clone, Debug)]
pub struct WatchArgs {
    /// Show it on the whole screen, and read the cluster again and again; keys are listed at the bottom
    #[arg(short, long)]
    pub watch: bool,
    /// With --watch, how long to wait between two readings
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval, requires = "watch")]
    pub interval: Duration,
}

/// What was read, and what was left out of it.
pub(super) type Read<T> = Result<(T, Vec<String>)>;

impl WatchArgs {
    /// Which columns the screen begins with; `None`: none is asked for. An error where there can be none.
    pub(super) fn detail(&self, output: WideFormat, files: &[PathBuf]) -> Result<Option<Detail>> {
        if !self.watch {
            return Ok(None);
        }
        let Some(detail) = output.detail() else {
            bail!("--watch shows a screen: it can't be given with -o json or -o yaml");
        };
        if files.iter().any(|file| file == Path::new("-")) {
            bail!("--watch reads keys from standard input, so -f can't be `-`");
        }
        if !stdin().is_terminal() || !stdout().is_terminal() {
            bail!("--watch needs a terminal: standard input or standard output is none");
        }
        Ok(Some(detail))
    }

    /// Shows what `read` reads again and again until it is told to end.
    pub(super) async fn show<T: Watched + Send + 'static>(
        &self,
        mut screen: Screen,
        read: impl Fn() -> BoxFuture<'static, Read<T>>,
    ) -> Result<CommandAnswer> {
        let mut signals = Signals::new()?;
        let mut reading = Reading::default();
        let mut terminal = FullScreen::enter()?;
        let mut events = EventStream::new();
        let mut reads: JoinSet<Read<T>> = JoinSet::new();
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
                    reads.spawn(read());
                }
                Some(read) = reads.join_next() => {
                    take(&mut reading, read.context("what reads the cluster has ended")?);
                    next = Instant::now() + self.interval;
                }
            }
        }
    }
}

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

/// Takes in what was read. What could be read before stays on the screen.
fn take<T>(reading: &mut Reading<T>, read: Read<T>) {
    match read {
        Ok((seen, warnings)) => {
            let (at, trouble) = (Some(Clock::System.now()), warnings.into_iter().next());
            *reading = Reading { seen: Some(seen), at, trouble };
        }
        Err(error) => reading.trouble = Some(format!("{error:#}")),
    }
}

/// Does this in a thread of its own. Nobody waits for it when the program ends, as the runtime would for one of its own.
pub(super) async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    let work = move || drop(answer.send(work()));
    thread::Builder::new().name("count".to_owned()).spawn(work).context("can't start a thread")?;
    answered.await.context("what counts the cards has ended")?
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
fn interval(text: &str) -> Result<Duration, String> {
    let time =
        crate::config::duration::parse(text).filter(|time| *time >= jiff::SignedDuration::from_millis(100));
    time.map(jiff::SignedDuration::unsigned_abs)
        .ok_or_else(|| "not a time of at least 100ms, such as `2s`".to_owned())
}
