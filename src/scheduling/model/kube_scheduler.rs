//! The release of kube-scheduler that is followed where releases differ.

/// A release of kube-scheduler, or a range of them that decide alike.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum KubeScheduler {
    /// 1.36 and the releases before it.
    #[default]
    V1_36,
    /// 1.37 and the releases after it.
    V1_37,
}

impl KubeScheduler {
    /// Every release that can be followed, in order.
    pub const ALL: [Self; 2] = [Self::V1_36, Self::V1_37];

    /// The one of a cluster whose API server has this minor version of Kubernetes 1.
    pub fn of_minor(minor: u32) -> Self {
        if minor < 37 { Self::V1_36 } else { Self::V1_37 }
    }

    /// Whether the API server beside it keeps `status.extendedResourceClaimStatus` of a pod once it is written (v1.37
    /// `pkg/registry/core/pod/strategy.go`): it can name another claim, but no longer none.
    pub fn keeps_stated_claim(self) -> bool {
        self >= Self::V1_37
    }

    /// As settings spell it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::V1_36 => "v1.36",
            Self::V1_37 => "v1.37",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_is_not_known_counts_as_the_nearest_one() {
        let followed = [30, 36, 37, 104].map(KubeScheduler::of_minor);
        assert_eq!(
            followed,
            [KubeScheduler::V1_36, KubeScheduler::V1_36, KubeScheduler::V1_37, KubeScheduler::V1_37]
        );
    }
}
