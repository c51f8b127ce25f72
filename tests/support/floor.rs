//! The floor that an end-to-end case stands on, so that one source of a case runs on each.
//!
//! It must not hide a difference between the floors: a case that needs one asks for it by name.

use std::sync::Arc;

use berth_sandbox::{Sandbox, UserInfo};

use super::controlplane::{ControlPlane, Options};

/// What serves the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The API server inside the process.
    Sandbox,
    /// A real etcd and kube-apiserver.
    Real,
}

/// An API server that a case may fill and break, gone when dropped.
pub struct Cluster {
    /// May do anything.
    pub client: kube::Client,
    serving: Serving,
}

enum Serving {
    Sandbox(Sandbox),
    Real(Box<ControlPlane>),
}

impl Cluster {
    /// A fresh and empty cluster; `None`, said on standard error, where the floor is not to be had.
    pub async fn start(floor: Floor) -> Option<Self> {
        Self::start_with(floor, Options::default()).await
    }

    /// As [`Self::start`], with extra callers or flags, which only the real floor reads.
    pub async fn start_with(floor: Floor, options: Options) -> Option<Self> {
        match floor {
            Floor::Sandbox => {
                let sandbox = Sandbox::new(berth_sandbox::Options {
                    transport: Arc::new(berth_sandbox::Https::default()),
                    ..berth_sandbox::Options::default()
                });
                Some(Self { client: sandbox.client(), serving: Serving::Sandbox(sandbox) })
            }
            Floor::Real => {
                let plane = ControlPlane::start(options).await?;
                Some(Self { client: plane.admin(), serving: Serving::Real(Box::new(plane)) })
            }
        }
    }

    /// A client of one of the identities in the options, or of `admin`.
    pub fn client_of(&self, user: &str) -> kube::Client {
        match &self.serving {
            Serving::Sandbox(sandbox) => {
                sandbox.client_as(UserInfo { username: user.to_owned(), ..UserInfo::admin() })
            }
            Serving::Real(plane) => plane.client(user),
        }
    }

    /// The servers behind it, for faults that only processes can have; `None` on a floor without processes.
    pub fn control_plane(&mut self) -> Option<&mut ControlPlane> {
        match &mut self.serving {
            Serving::Sandbox(_) => None,
            Serving::Real(plane) => Some(plane),
        }
    }
}
