//! The stories that show deliberate bugs: which faults, which users.
//!
//! They must not say how Berth is made to have a bug ([`crate::lie`]).

use crate::{
    attack::Attack,
    story::{Act, Crowd, GENERAL, Sky, Slip, Story, Wrong},
};

/// Every story, by its name.
pub(crate) const STORIES: [(&str, &Story); 33] = [
    ("general", &GENERAL),
    ("neighbours", &NEIGHBOURS),
    ("zones", &ZONES),
    ("windows", &WINDOWS),
    ("devices", &DEVICES),
    ("claims", &CLAIMS),
    ("allocators", &ALLOCATORS),
    ("sharers", &SHARERS),
    ("locks", &LOCKS),
    ("rivals", &RIVALS),
    ("doubt", &DOUBT),
    ("names", &NAMES),
    ("ends", &ENDS),
    ("gaps", &GAPS),
    ("machines", &MACHINES),
    ("quotas", &QUOTAS),
    ("leads", &LEADS),
    ("handovers", &HANDOVERS),
    ("ranks", &RANKS),
    ("recalls", &RECALLS),
    ("teams", &TEAMS),
    ("users", &USERS),
    ("late", &LATE),
    ("claim ranks", &CLAIM_RANKS),
    ("trees", &TREES),
    ("selectors", &SELECTORS),
    ("dry runs", &DRY_RUNS),
    ("searches", &SEARCHES),
    ("gangs", &GANGS),
    ("classes", &CLASSES),
    ("deletions", &DELETIONS),
    ("storms", &STORMS),
    ("places", &PLACES),
];

/// All is full, and what is free is taken at once.
const FULL: Crowd = Crowd {
    hami: 600,
    odd: 0,
    memory: &["9900", "12200"],
    cores: &["0", "20"],
    grace: &[5],
    quota: 0,
    ..GENERAL.crowd
};

/// Locks change hands under Berth's eyes, which see it late.
pub(crate) const LOCKS: Story = Story {
    steps: 240,
    pauses: &[(300, 1)],
    acts: &[(Act::Create, 4), (Act::Delete, 3), (Act::ForeignLock, 6), (Act::Touch, 1)],
    crowd: Crowd { hami: 1000, memory: &["1100", "3300"], ..FULL },
    calls: &[("/nodes/", 500), ("", 50)],
    writes: &[(Wrong::SlowRequest, 1)],
    watches: &[("/nodes", 600), ("", 50)],
    events: &[(Slip::Slow, 1)],
    lag: 1500,
    ..GENERAL
};

/// Another scheduler comes, takes locks and goes, while binders die, calls fail and watches lag.
pub(crate) const RIVALS: Story = Story {
    steps: 240,
    pauses: &[(300, 6), (4000, 3), (12_000, 1)],
    acts: &[
        (Act::Create, 12),
        (Act::Delete, 8),
        (Act::Rival, 8),
        (Act::Touch, 1),
        (Act::Kill, 1),
        (Act::Stop, 1),
        (Act::Weather, 1),
    ],
    crowd: Crowd { hami: 1000, odd: 2, memory: &["1100", "3300"], ..FULL },
    skies: &[(Sky::Still, 1), (Sky::Rough(100), 2), (Sky::Rough(300), 1)],
    lag: 2000,
    ..GENERAL
};

/// Answers of Bindings are lost, and what is bound is seen late.
pub(crate) const DOUBT: Story = Story {
    rooms: true,
    steps: 480,
    pauses: &[(300, 3), (4000, 1)],
    acts: &[(Act::Create, 6), (Act::Delete, 3)],
    crowd: Crowd { hami: 300, ..FULL },
    calls: &[("/binding", 400), ("", 20)],
    writes: &[(Wrong::AnswerLost, 2), (Wrong::DoneButRefused(504), 1)],
    reads: &[(Wrong::SlowAnswer, 1)],
    watches: &[("/api/v1/pods", 250), ("", 20)],
    events: &[(Slip::Slow, 1)],
    lag: 40_000,
    ..GENERAL
};

/// Pods are replaced by others of their names, and whatever is said of them comes late.
pub(crate) const NAMES: Story = Story {
    steps: 240,
    pauses: &[(500, 1)],
    acts: &[(Act::Create, 3), (Act::Recreate, 5), (Act::Delete, 2)],
    calls: &[("/binding", 600), ("", 100)],
    writes: &[(Wrong::SlowRequest, 3), (Wrong::Late, 1)],
    watches: &[("/api/v1/pods", 300), ("", 50)],
    events: &[(Slip::Slow, 3), (Slip::Twice, 1)],
    crowd: Crowd { odd: 0, quota: 0, ..GENERAL.crowd },
    lag: 2000,
    ..GENERAL
};

/// All is full, and pods take their time to end.
pub(crate) const ENDS: Story = Story {
    rooms: true,
    steps: 480,
    pauses: &[(500, 1)],
    acts: &[(Act::Create, 3), (Act::Delete, 3)],
    crowd: FULL,
    skies: &[(Sky::Still, 1)],
    calls: &[("", 20)],
    watches: &[("", 20)],
    ..GENERAL
};

/// Watches end without end, while pods are deleted.
pub(crate) const GAPS: Story = Story {
    steps: 240,
    acts: &[(Act::Create, 10), (Act::Delete, 12), (Act::Compact, 2), (Act::RestartServer, 1)],
    crowd: FULL,
    calls: &[("", 50)],
    reads: &[(Wrong::Refused(410), 1), (Wrong::Lost, 1)],
    watches: &[("/api/v1/pods", 300), ("", 50)],
    events: &[(Slip::Expired, 3), (Slip::Broken, 1)],
    ..GENERAL
};

/// Machines come and go.
pub(crate) const MACHINES: Story = Story {
    steps: 240,
    acts: &[(Act::Create, 5), (Act::Delete, 3), (Act::SwapNode, 3)],
    pauses: &[(2000, 1)],
    calls: &[("", 50)],
    watches: &[("", 50)],
    ..GENERAL
};

/// The namespace may have little, and now and then something else.
pub(crate) const QUOTAS: Story = Story {
    steps: 240,
    pauses: &[(1000, 3), (8000, 1)],
    acts: &[(Act::Create, 30), (Act::Delete, 20), (Act::Quota, 1), (Act::Kill, 1)],
    crowd: Crowd { quota: 1000, odd: 4, ..GENERAL.crowd },
    calls: &[("", 200)],
    watches: &[("", 200)],
    ..GENERAL
};

/// The lead is lost and won.
pub(crate) const LEADS: Story = Story {
    steps: 240,
    pauses: &[(1000, 3), (5000, 1)],
    acts: &[(Act::Create, 12), (Act::Delete, 9), (Act::Weather, 4)],
    crowd: Crowd {
        hami: 500,
        odd: 0,
        memory: &["1100", "3300"],
        cores: &["0", "20"],
        grace: &[1],
        quota: 0,
        ..GENERAL.crowd
    },
    skies: &[(Sky::Paused, 3), (Sky::Rough(300), 1)],
    calls: &[("/leases", 400), ("/binding", 500), ("", 50)],
    writes: &[(Wrong::SlowRequest, 2), (Wrong::AnswerLost, 1), (Wrong::Silence, 1)],
    reads: &[(Wrong::SlowAnswer, 1)],
    ..GENERAL
};

/// The leader is told to end, or dies, in the middle of its work.
pub(crate) const HANDOVERS: Story = Story {
    rooms: true,
    acts: &[(Act::Create, 10), (Act::Delete, 9), (Act::Behave, 2), (Act::Stop, 2), (Act::Kill, 1)],
    calls: &[("/leases", 20), ("/binding", 700), ("", 50)],
    writes: &[(Wrong::SlowRequest, 1)],
    ..LEADS
};

/// Pods with claims come and go, while volumes are made late; and pods that keep away from each other. No binder dies: what is to be
/// taken back of a claim is remembered by the one that wrote it.
pub(crate) const NEIGHBOURS: Story = Story {
    steps: 240,
    pauses: &[(1000, 3), (3000, 1)],
    acts: &[(Act::Create, 12), (Act::Delete, 10), (Act::Provision, 4), (Act::Cordon, 1)],
    crowd: Crowd {
        hami: 1000,
        odd: 0,
        memory: &["1100", "3300"],
        cores: &["0", "20"],
        grace: &[1],
        quota: 0,
        claims: 400,
        apart: 500,
        ..GENERAL.crowd
    },
    calls: &[("/leases", 0), ("/persistentvolumeclaims", 150), ("", 30)],
    reads: &[(Wrong::SlowAnswer, 1), (Wrong::Lost, 1)],
    writes: &[
        (Wrong::SlowRequest, 2),
        (Wrong::SlowAnswer, 2),
        (Wrong::Refused(409), 1),
        (Wrong::Refused(504), 1),
        (Wrong::DoneButRefused(504), 1),
        (Wrong::AnswerLost, 2),
        (Wrong::Lost, 1),
    ],
    watches: &[("/persistentvolume", 150), ("", 50)],
    events: &[(Slip::Slow, 3), (Slip::Twice, 1), (Slip::Broken, 1)],
    ..GENERAL
};

/// Pods are spread over zones, of Berth and of others; they come and go, and nodes move from zone to zone.
pub(crate) const ZONES: Story = Story {
    steps: 240,
    acts: &[
        (Act::Create, 24),
        (Act::Delete, 22),
        (Act::Zone, 4),
        (Act::ForeignPod, 4),
        (Act::Cordon, 2),
        (Act::Touch, 1),
    ],
    crowd: Crowd { claims: 0, apart: 0, spread: 700, ..NEIGHBOURS.crowd },
    calls: &[("/leases", 0), ("/binding", 150), ("", 30)],
    watches: &[("/api/v1/pods", 100), ("/api/v1/nodes", 100), ("", 30)],
    events: &[(Slip::Slow, 3), (Slip::Twice, 1), (Slip::ThenStale, 1), (Slip::Broken, 1)],
    ..NEIGHBOURS
};

/// All is full, and some pods preempt others, which take their time to end.
pub(crate) const RANKS: Story = Story {
    rooms: true,
    steps: 240,
    pauses: &[(1000, 3), (6000, 1)],
    acts: &[(Act::Create, 12), (Act::Delete, 6), (Act::Kill, 1)],
    crowd: Crowd {
        hami: 1000,
        odd: 0,
        memory: &["3300", "6600", "9900", "12200"],
        cores: &["0"],
        grace: &[1, 20, 90],
        quota: 0,
        urgent: 250,
        ..GENERAL.crowd
    },
    calls: &[("/leases", 0), ("/status", 150), ("", 50)],
    watches: &[("", 30)],
    ..GENERAL
};

/// Pods for which others go are deleted before they are bound, and what a node has kept for them is wanted by others. What is kept for a pod
/// of another scheduler is what Kubernetes accounts, which is most on nodes of Volcano's family. No binder begins anew: that one would not
/// know of a pod that is gone.
pub(crate) const RECALLS: Story = Story {
    steps: 240,
    pauses: &[(1000, 3), (4000, 1)],
    acts: &[(Act::Create, 12), (Act::Delete, 9)],
    crowd: Crowd {
        hami: 0,
        odd: 0,
        memory: &["6600", "9900", "12200"],
        cores: &["0"],
        grace: &[20, 90],
        quota: 0,
        urgent: 400,
        ..GENERAL.crowd
    },
    calls: &[("/leases", 0), ("/status", 50), ("", 30)],
    watches: &[("/api/v1/pods", 0), ("", 30)],
    ..GENERAL
};

/// Groups come whose pods are placed together, while binders die.
pub(crate) const TEAMS: Story = Story {
    steps: 240,
    pauses: &[(1000, 3), (6000, 1)],
    acts: &[(Act::Create, 12), (Act::Delete, 7), (Act::Kill, 2), (Act::ForeignLock, 1)],
    crowd: Crowd {
        hami: 700,
        odd: 0,
        memory: &["3300", "6600", "9900", "12200"],
        cores: &["0"],
        quota: 0,
        gangs: 500,
        ..GENERAL.crowd
    },
    calls: &[("/leases", 0), ("/binding", 250), ("", 50)],
    watches: &[("", 30)],
    ..GENERAL
};

/// Zones open and close, pods leave them within their budgets and take their time to end, and binders die.
pub(crate) const WINDOWS: Story = Story {
    steps: 240,
    pauses: &[(2000, 3), (8000, 1)],
    acts: &[(Act::Create, 12), (Act::Delete, 3), (Act::Budget, 2), (Act::TakeBack, 2), (Act::Kill, 3)],
    crowd: Crowd {
        hami: 600,
        odd: 0,
        memory: &["1100", "2200"],
        cores: &["0"],
        grace: &[1, 20, 90],
        quota: 0,
        preemptable: 800,
        ..GENERAL.crowd
    },
    calls: &[("/leases", 0), ("/eviction", 300), ("", 30)],
    watches: &[("", 30)],
    ..GENERAL
};

/// Pods have GPUs, NICs and virtual functions, together or by themselves, while Devices are deleted and come back, devices fail and
/// recover, machines are exchanged and binders die.
pub(crate) const DEVICES: Story = Story {
    steps: 240,
    pauses: &[(1000, 3), (6000, 1)],
    acts: &[
        (Act::Create, 12),
        (Act::Delete, 11),
        (Act::Device, 3),
        (Act::Sicken, 3),
        (Act::Reserve, 5),
        (Act::Recreate, 1),
        (Act::SwapNode, 1),
        (Act::Cordon, 1),
        (Act::Compact, 1),
        (Act::Kill, 1),
    ],
    crowd: Crowd { odd: 0, quota: 0, devices: 1000, ..GENERAL.crowd },
    calls: &[("/leases", 0), ("/binding", 200), ("", 50)],
    watches: &[("/devices", 200), ("/api/v1/pods", 150), ("", 30)],
    ..GENERAL
};

/// Pods use claims of devices, of their own and together, while drivers publish other devices, users delete claims, machines are exchanged
/// and binders die between the finalizer, the status and the Binding.
pub(crate) const CLAIMS: Story = Story {
    steps: 120,
    pauses: &[(1000, 3), (6000, 1)],
    acts: &[
        (Act::Create, 16),
        (Act::Delete, 10),
        (Act::Claim, 3),
        (Act::Publish, 4),
        (Act::Recreate, 1),
        (Act::SwapNode, 1),
        (Act::Cordon, 1),
        (Act::Behave, 1),
        (Act::Compact, 1),
        (Act::Kill, 2),
        (Act::Stop, 1),
    ],
    crowd: Crowd { odd: 0, quota: 0, device_claims: 1000, shared_claims: 300, ..GENERAL.crowd },
    calls: &[("/leases", 0), ("/resourceclaims", 200), ("/binding", 200), ("", 50)],
    watches: &[("/resource", 200), ("/api/v1/pods", 100), ("", 30)],
    ..GENERAL
};

/// Claims that several pods use pass from hand to hand while nodes close and open. No binder dies: what is to be taken back of a claim is
/// remembered by the one that wrote it.
pub(crate) const USERS: Story = Story {
    acts: &[
        (Act::Create, 14),
        (Act::Delete, 10),
        (Act::Claim, 3),
        (Act::Publish, 1),
        (Act::Cordon, 6),
        (Act::Behave, 2),
    ],
    crowd: Crowd { shared_claims: 700, grace: &[1], ..CLAIMS.crowd },
    calls: &[("/leases", 0), ("/resourceclaims", 400), ("", 30)],
    reads: &[(Wrong::SlowAnswer, 1), (Wrong::Lost, 1)],
    writes: &[
        (Wrong::SlowRequest, 4),
        (Wrong::SlowAnswer, 2),
        (Wrong::Refused(409), 1),
        (Wrong::Refused(504), 1),
        (Wrong::Late, 1),
    ],
    ..CLAIMS
};

/// Answers of writes to claims are lost, and claims are seen late.
pub(crate) const LATE: Story = Story {
    acts: &[(Act::Create, 14), (Act::Delete, 10), (Act::Claim, 1)],
    calls: &[("/leases", 0), ("/resourceclaims", 400), ("", 20)],
    writes: &[(Wrong::AnswerLost, 2), (Wrong::DoneButRefused(504), 1)],
    reads: &[(Wrong::SlowAnswer, 1)],
    watches: &[("/resourceclaims", 300), ("", 20)],
    events: &[(Slip::Slow, 1)],
    lag: 10_000,
    ..CLAIMS
};

/// Pods preempt others for their claims, which they have for themselves or with others, while binders die and devices come and go.
pub(crate) const CLAIM_RANKS: Story = Story {
    acts: &[
        (Act::Create, 16),
        (Act::Delete, 6),
        (Act::Claim, 2),
        (Act::Publish, 2),
        (Act::Recreate, 1),
        (Act::Cordon, 1),
        (Act::Kill, 2),
        (Act::Stop, 1),
    ],
    crowd: Crowd { urgent: 300, grace: &[1, 20, 90], ..CLAIMS.crowd },
    calls: &[("/leases", 0), ("/resourceclaims", 150), ("/status", 150), ("/binding", 100), ("", 40)],
    ..CLAIMS
};

/// PodGroups of Kubernetes come, by themselves or in trees, whose pods use claims of their own or one of their group, while groups are deleted and come
/// back, claims are deleted, devices come and go, and binders die.
pub(crate) const TREES: Story = Story {
    acts: &[
        (Act::Create, 10),
        (Act::Delete, 12),
        (Act::Regroup, 8),
        (Act::Publish, 2),
        (Act::Cordon, 2),
        (Act::Compact, 1),
        (Act::Kill, 2),
        (Act::Stop, 1),
    ],
    crowd: Crowd { trees: 600, shared_claims: 200, grace: &[1, 5], ..CLAIMS.crowd },
    calls: &[
        ("/leases", 0),
        ("podgroups", 250),
        ("/resourceclaims", 150),
        ("/binding", 200),
        ("/eviction", 200),
        ("", 40),
    ],
    watches: &[("podgroups", 200), ("/resource", 100), ("/api/v1/pods", 100), ("", 30)],
    ..CLAIMS
};

/// Another scheduler gives the devices of the same drivers, and looks at nothing that Berth does.
pub(crate) const ALLOCATORS: Story = Story {
    acts: &[
        (Act::Create, 14),
        (Act::Delete, 10),
        (Act::Allocate, 8),
        (Act::Claim, 1),
        (Act::Publish, 1),
        (Act::Kill, 1),
        (Act::Stop, 1),
    ],
    crowd: Crowd { shared_claims: 200, grace: &[1], ..CLAIMS.crowd },
    ..CLAIMS
};

/// Another scheduler gives shares of the same devices and parts of the same cards. Drivers publish nothing else meanwhile: of a device that is not there
/// nobody knows how much there is.
pub(crate) const SHARERS: Story = Story {
    acts: &[
        (Act::Create, 14),
        (Act::Delete, 10),
        (Act::AllocateShare, 8),
        (Act::Claim, 1),
        (Act::Kill, 1),
        (Act::Stop, 1),
    ],
    ..ALLOCATORS
};

/// A user creates claims whose selectors take long, while binders die.
pub(crate) const SELECTORS: Story = Story {
    steps: 15,
    pauses: &[(1000, 3), (4000, 1)],
    acts: &[(Act::Create, 8), (Act::Delete, 6), (Act::Weather, 2), (Act::Kill, 1), (Act::Stop, 1)],
    crowd: Crowd { hami: 1000, odd: 0, quota: 0, ..GENERAL.crowd },
    attack: Some(Attack::Selectors),
    ..GENERAL
};

/// A user has pods reviewed whose claims take long, and many others.
pub(crate) const DRY_RUNS: Story = Story { attack: Some(Attack::DryRuns), ..SELECTORS };

/// A user creates claims whose devices take a long search.
pub(crate) const SEARCHES: Story = Story { attack: Some(Attack::Searches), ..SELECTORS };

/// A user creates gangs that can't be placed.
pub(crate) const GANGS: Story = Story { attack: Some(Attack::Gangs), ..SELECTORS };

/// A user creates pods that fit nowhere and are each like no other.
pub(crate) const CLASSES: Story = Story { attack: Some(Attack::Classes), ..SELECTORS };

/// A user deletes pods by force once they are bound.
pub(crate) const DELETIONS: Story = Story { steps: 60, attack: Some(Attack::Deletions), ..SELECTORS };

/// A user has pods preempted for one that never starts.
pub(crate) const STORMS: Story = Story {
    crowd: Crowd { claims: 1000, urgent: 1000, ..SELECTORS.crowd },
    attack: Some(Attack::Storms),
    ..SELECTORS
};

/// A user has cards kept for volumes that are never made.
pub(crate) const PLACES: Story = Story {
    steps: 60,
    crowd: Crowd { claims: 1000, ..SELECTORS.crowd },
    attack: Some(Attack::Places),
    ..SELECTORS
};
