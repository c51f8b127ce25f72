//! What the plugins that speak HAMi's protocol read and write, a row for each vendor, and how they differ.
//!
//! It must not act: that is Allocate's. Keys and words: Project-HAMi/HAMi v2.10 `pkg/device/*/device.go`, and each vendor's plugin.

use super::share::Names;

/// A release of HAMi, as far as the wire differs: each stands for those up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// Registers 7 comma fields a card.
    V2_4,
    /// Registers 9 comma fields a card (v2.5 to v2.7).
    V2_7,
    /// Registers JSON; forgets empty segments.
    V2_8,
    /// Keeps empty segments; finds pods in phase `success` too.
    V2_9,
    /// As v2.9 on the wire, without MIG.
    V2_10,
}

/// What one vendor's plugin reads and writes.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) names: Names,
    pub(super) register: &'static str,
    pub(super) allocated: &'static str,
    pub(super) to_allocate: &'static str,
    pub(super) manner: Manner,
}

/// How a plugin goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// As HAMi's own: a pod is served when its word is left nowhere in what is to allocate.
    Word(&'static str),
    /// As HAMi's own did before its lock named a pod; what is left is looked at for the word. It serves the first pod of the cluster that
    /// names its node and says `allocating`, dead or alive, and frees the node whoever holds its lock
    /// (Project-HAMi/dcu-vgpu-device-plugin 10dd197 `internal/pkg/util/util.go` `GetPendingPod`, `internal/pkg/dcu/server.go` `Allocate`,
    /// `internal/pkg/util/nodelock/nodelock.go` `ReleaseNodeLock`).
    Lockless(&'static str),
    /// A pod is served when what is to allocate is no longer all of its record, which one Allocate makes true; compute units are
    /// masked (Project-HAMi/amd-device-plugin `internal/pkg/plugin/plugin.go` `Allocate`, `internal/pkg/utils/utils.go`).
    Amd,
    /// It never says that a pod is served, and frees the node once nothing is left to allocate, so not after a failure
    /// (Project-HAMi/biren-device-plugin `pkg/brgpu/plugin.go` `Allocate`).
    Biren,
}

impl Manner {
    /// As which release of HAMi's plugin it reads segments; `own`: that of HAMi's plugin itself. The others' are built on a
    /// decoder that drops the empty ones.
    pub(super) fn release(self, own: Release) -> Release {
        match self {
            Manner::Word(_) => own,
            Manner::Lockless(_) | Manner::Amd | Manner::Biren => Release::V2_8,
        }
    }
}

pub(super) const NVIDIA: Wire = Wire {
    names: Names {
        count: "nvidia.com/gpu",
        memory: "nvidia.com/gpumem",
        percentage: Some("nvidia.com/gpumem-percentage"),
        cores: "nvidia.com/gpucores",
    },
    register: "hami.io/node-nvidia-register",
    allocated: "hami.io/vgpu-devices-allocated",
    to_allocate: "hami.io/vgpu-devices-to-allocate",
    manner: Manner::Word("NVIDIA"),
};

pub(super) const HYGON: Wire = Wire {
    names: Names {
        count: "hygon.com/dcunum",
        memory: "hygon.com/dcumem",
        percentage: None,
        cores: "hygon.com/dcucores",
    },
    register: "hami.io/node-dcu-register",
    allocated: "hami.io/dcu-devices-allocated",
    to_allocate: "hami.io/dcu-devices-to-allocate",
    manner: Manner::Lockless("DCU"),
};

pub(super) const ASCEND: Wire = Wire {
    names: Names {
        count: "huawei.com/Ascend910B3",
        memory: "huawei.com/Ascend910B3-memory",
        percentage: None,
        cores: "huawei.com/Ascend910B3-core",
    },
    register: "hami.io/node-register-Ascend910B3",
    allocated: "hami.io/Ascend910B3-devices-allocated",
    to_allocate: "hami.io/Ascend910B3-devices-to-allocate",
    manner: Manner::Word("Ascend910B3"),
};

pub(super) const ILUVATAR: Wire = Wire {
    names: Names {
        count: "iluvatar.ai/MR-V100-vgpu",
        memory: "iluvatar.ai/MR-V100.vMem",
        percentage: None,
        cores: "iluvatar.ai/MR-V100.vCore",
    },
    register: "hami.io/node-MR-V100-register",
    allocated: "hami.io/MR-V100-devices-allocated",
    to_allocate: "hami.io/MR-V100-devices-to-allocate",
    manner: Manner::Lockless("MR-V100"),
};

pub(super) const AMD: Wire = Wire {
    names: Names {
        count: "amd.com/gpu",
        memory: "amd.com/gpumem",
        percentage: None,
        cores: "amd.com/gpucores",
    },
    register: "hami.io/node-amd-register",
    allocated: "hami.io/amd-devices-allocated",
    to_allocate: "hami.io/amd-devices-to-allocate",
    manner: Manner::Amd,
};

pub(super) const BIREN: Wire = Wire {
    names: Names { count: "birentech.com/gpu", memory: "", percentage: None, cores: "" },
    register: "hami.io/node-biren-register",
    allocated: "hami.io/Biren-devices-allocated",
    to_allocate: "hami.io/Biren-devices-to-allocate",
    manner: Manner::Biren,
};
