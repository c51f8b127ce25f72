//! What a run is made of, as data: how long it is, who does what how often, and what goes wrong with which calls.
//!
//! It must not do any of it: the actors do, and the plan.

use std::time::Duration;

use berth::scheduling::Details;
use berth_sandbox::fault::{CallFault, EventFault};

use crate::{attack::Attack, device_claims, devices, dice::Dice, world::NODES};

/// Choices, each with how often it is taken among all.
pub(crate) type Mix<T> = &'static [(T, u64)];

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story {
    /// Things that happen before all grows calm.
    pub(crate) steps: u64,
    /// Longest pauses between two of them, in milliseconds.
    pub(crate) pauses: Mix<u64>,
    /// What happens.
    pub(crate) acts: Mix<Act>,
    /// Who comes.
    pub(crate) crowd: Crowd,
    /// How the network is, whenever it changes.
    pub(crate) skies: Mix<Sky>,
    /// How often calls fail whose path holds the words; the first that does counts, and the weather where none does.
    pub(crate) calls: Mix<&'static str>,
    /// What goes wrong with what is asked.
    pub(crate) reads: Mix<Wrong>,
    /// What goes wrong with what is written.
    pub(crate) writes: Mix<Wrong>,
    /// How often events fail whose watch's path holds the words, as with calls.
    pub(crate) watches: Mix<&'static str>,
    /// What goes wrong with events.
    pub(crate) events: Mix<Slip>,
    /// The longest that an event is late, in milliseconds.
    pub(crate) lag: u64,
    /// How much the users of a namespace are told.
    pub(crate) details: Details,
    /// Whether room is kept for pods that wait long.
    pub(crate) rooms: bool,
    /// What the users do to others, in place of what the crowd asks for.
    pub(crate) attack: Option<Attack>,
}

/// What happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Act {
    Create,
    Delete,
    /// A pod is deleted by force and another created under its name.
    Recreate,
    /// A pod is held back by a gate, or its gate is opened.
    Gate,
    /// A quota is set on the namespace, changed or taken away.
    Quota,
    /// The PodDisruptionBudget allows some disruptions, or none.
    Budget,
    Cordon,
    /// A node moves to another zone, or has none any more.
    Zone,
    /// A user takes back that a pod which is bound may be preempted.
    TakeBack,
    /// Something that matters to nobody changes on a node.
    Touch,
    /// A machine goes away with its pods, or one comes in its place.
    SwapNode,
    /// Another scheduler takes a node's lock, gives it back, or loses its pod.
    ForeignLock,
    /// A scheduler of HAMi's is started, or takes a node's lock, or goes. Where there is one, Berth leaves locks out while it is not there.
    Rival,
    /// Another scheduler places a pod without cards.
    ForeignPod,
    /// A node's agent becomes slow, wrong, dead or well.
    Behave,
    /// A card falls ill or gets well.
    Sicken,
    /// The Device of a node is deleted, or written again.
    Device,
    /// A claim of devices that several pods use is created or deleted.
    Claim,
    /// A driver publishes other devices of a node, or none.
    Publish,
    /// A PodGroup of Kubernetes gets another pod, or is deleted with its pods; or a CompositePodGroup is deleted or comes back.
    Regroup,
    /// Another scheduler reserves a GPU, or a Reservation ends.
    Reserve,
    /// Another scheduler gives a device of a claim to a pod of its own, whoever has the device, or such a pod ends.
    Allocate,
    /// The same, of a share of a device or a part of one.
    AllocateShare,
    /// The provisioner of volumes stops, or goes on.
    Provision,
    /// History is compacted.
    Compact,
    /// The API server ends and comes back.
    RestartServer,
    /// A replica dies.
    Kill,
    /// A replica is told to end.
    Stop,
    /// The network changes.
    Weather,
}

impl Act {
    pub(crate) const ALL: [Self; 29] = [
        Self::Create,
        Self::Delete,
        Self::Recreate,
        Self::Gate,
        Self::Quota,
        Self::Budget,
        Self::Cordon,
        Self::Zone,
        Self::TakeBack,
        Self::Touch,
        Self::SwapNode,
        Self::ForeignLock,
        Self::Rival,
        Self::ForeignPod,
        Self::Behave,
        Self::Sicken,
        Self::Device,
        Self::Claim,
        Self::Publish,
        Self::Regroup,
        Self::Reserve,
        Self::Allocate,
        Self::AllocateShare,
        Self::Provision,
        Self::Compact,
        Self::RestartServer,
        Self::Kill,
        Self::Stop,
        Self::Weather,
    ];
}

/// Who comes, and what the namespace may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// So many of a thousand pods ask for HAMi's cards, the others for Volcano's.
    pub(crate) hami: u64,
    /// So many of twenty pods are of an odd form: unreadable, with volumes, with several containers.
    pub(crate) odd: u64,
    /// MiB.
    pub(crate) memory: &'static [&'static str],
    /// Percent.
    pub(crate) cores: &'static [&'static str],
    /// How long they may take to end, in seconds.
    pub(crate) grace: &'static [u64],
    /// So many of a thousand runs begin with a quota.
    pub(crate) quota: u64,
    /// So many of a thousand pods have a claim that waits for its first pod.
    pub(crate) claims: u64,
    /// So many of a thousand pods share their node with no other of these.
    pub(crate) apart: u64,
    /// So many of a thousand pods are spread over zones; where there are any, so are pods of another scheduler.
    pub(crate) spread: u64,
    /// So many of a thousand pods are of a priority above that of the others.
    pub(crate) urgent: u64,
    /// So many of a thousand arrivals are of a whole group, whose pods are placed together.
    pub(crate) gangs: u64,
    /// So many of a thousand arrivals are of PodGroups of Kubernetes: one, or a tree of them under CompositePodGroups. Where there are any, each node is
    /// in a rack.
    pub(crate) trees: u64,
    /// So many of a thousand pods are preemptable; where there are any, some nodes are in revocable zones.
    pub(crate) preemptable: u64,
    /// So many of a thousand pods ask for Koordinator's devices; where there are any, these are what all nodes have.
    pub(crate) devices: u64,
    /// So many of a thousand pods use claims of devices; where there are any, these are what all nodes have.
    pub(crate) device_claims: u64,
    /// So many of a thousand of these use a claim that others use too.
    pub(crate) shared_claims: u64,
}

/// How the network is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sky {
    Still,
    /// So many calls and events of a thousand go wrong.
    Rough(u64),
    /// Nothing gets through for a while.
    Parted,
    /// The process stands still for a while.
    Paused,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wrong {
    SlowRequest,
    SlowAnswer,
    Refused(u16),
    DoneButRefused(u16),
    Lost,
    AnswerLost,
    Late,
    Silence,
    CallerDies,
    CallerDiesFirst,
}

impl Wrong {
    /// With its times.
    pub(crate) fn fault(self, dice: &mut Dice) -> CallFault {
        match self {
            Self::SlowRequest => CallFault::SlowRequest(dice.millis(4000)),
            Self::SlowAnswer => CallFault::SlowAnswer(dice.millis(12_000)),
            Self::Refused(code) => CallFault::Refused(code),
            Self::DoneButRefused(code) => CallFault::DoneButRefused(code),
            Self::Lost => CallFault::Lost,
            Self::AnswerLost => CallFault::AnswerLost,
            // The API server itself gives a write up after 5 s.
            Self::Late => CallFault::Late(dice.millis(4000)),
            Self::Silence => CallFault::Silence(dice.millis(20_000)),
            Self::CallerDies => CallFault::CallerDies,
            Self::CallerDiesFirst => CallFault::CallerDiesFirst,
        }
    }
}

/// What goes wrong with an event of a watch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Slip {
    Slow,
    Twice,
    ThenStale,
    Cut,
    Broken,
    Expired,
    /// It is left out; only what is of nothing ever is.
    LeftOut,
}

impl Slip {
    /// With its time.
    pub(crate) fn fault(self, dice: &mut Dice, lag: u64) -> EventFault {
        match self {
            Self::Slow => EventFault::Slow(dice.millis(lag)),
            Self::Twice => EventFault::Twice,
            Self::ThenStale => EventFault::ThenStale,
            Self::Cut => EventFault::Cut,
            Self::Broken => EventFault::Broken,
            Self::Expired => EventFault::Expired,
            Self::LeftOut => EventFault::LeftOut,
        }
    }
}

/// A bit of everything.
pub(crate) const GENERAL: Story = Story {
    steps: 120,
    pauses: &[(100, 6), (2000, 3), (10_000, 1)],
    acts: &[
        (Act::Create, 33),
        (Act::Delete, 15),
        (Act::Recreate, 8),
        (Act::Gate, 3),
        (Act::Quota, 2),
        (Act::Cordon, 5),
        (Act::Touch, 4),
        (Act::SwapNode, 3),
        (Act::ForeignLock, 7),
        (Act::ForeignPod, 3),
        (Act::Behave, 7),
        (Act::Sicken, 2),
        (Act::Compact, 2),
        (Act::RestartServer, 1),
        (Act::Kill, 2),
        (Act::Stop, 1),
        (Act::Weather, 4),
    ],
    crowd: Crowd {
        hami: 600,
        odd: 7,
        memory: &["1100", "3300", "6600", "9900", "12200", "16100"],
        cores: &["0", "20", "50", "100"],
        grace: &[1, 5],
        quota: 300,
        claims: 0,
        apart: 0,
        spread: 0,
        urgent: 0,
        gangs: 0,
        trees: 0,
        preemptable: 0,
        devices: 0,
        device_claims: 0,
        shared_claims: 0,
    },
    skies: &[(Sky::Still, 1), (Sky::Parted, 1), (Sky::Paused, 1), (Sky::Rough(550), 1), (Sky::Rough(300), 2)],
    calls: &[],
    reads: &[
        (Wrong::SlowRequest, 4),
        (Wrong::SlowAnswer, 4),
        (Wrong::Refused(410), 1),
        (Wrong::Refused(429), 1),
        (Wrong::Refused(500), 1),
        (Wrong::Refused(504), 1),
        (Wrong::Silence, 4),
        (Wrong::CallerDies, 3),
        (Wrong::Lost, 5),
    ],
    writes: &[
        (Wrong::SlowRequest, 6),
        (Wrong::SlowAnswer, 12),
        (Wrong::Refused(409), 3),
        (Wrong::Refused(429), 3),
        (Wrong::Refused(500), 3),
        (Wrong::Refused(504), 3),
        (Wrong::DoneButRefused(409), 4),
        (Wrong::DoneButRefused(500), 4),
        (Wrong::DoneButRefused(504), 4),
        (Wrong::Lost, 6),
        (Wrong::AnswerLost, 6),
        (Wrong::Late, 6),
        (Wrong::Silence, 6),
        (Wrong::CallerDies, 4),
        (Wrong::CallerDiesFirst, 2),
    ],
    watches: &[],
    events: &[
        (Slip::Slow, 4),
        (Slip::Twice, 2),
        (Slip::ThenStale, 1),
        (Slip::Cut, 1),
        (Slip::Broken, 1),
        (Slip::Expired, 1),
    ],
    lag: 5000,
    details: Details::Full,
    rooms: false,
    attack: None,
};

impl Story {
    /// The nodes, each with the family of its cards in its name.
    pub(crate) fn nodes(&self) -> &'static [&'static str] {
        match &self.crowd {
            Crowd { devices: 1.., .. } => &devices::NODES,
            Crowd { device_claims: 1.., .. } => &device_claims::NODES,
            _ => &NODES,
        }
    }

    /// Whether another scheduler gives shares and parts of devices.
    pub(crate) fn gives_shares(&self) -> bool {
        self.acts.iter().any(|(act, _)| *act == Act::AllocateShare)
    }

    /// Whether another scheduler of HAMi's comes and goes.
    pub(crate) fn has_rival(&self) -> bool {
        self.acts.iter().any(|(act, _)| *act == Act::Rival)
    }

    /// How long until the next thing happens.
    pub(crate) fn pause(&self, dice: &mut Dice) -> Duration {
        let most = dice.pick(self.pauses);
        dice.millis(most)
    }
}

/// How many of a thousand go wrong on this path, where the weather says so many.
pub(crate) fn rate(of: Mix<&'static str>, path: &str, weather: u64) -> u64 {
    of.iter().find(|(words, _)| path.contains(words)).map_or(weather, |(_, rate)| *rate)
}
