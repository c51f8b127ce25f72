//! What the rules may know beside the request: settings and what was read of the cluster.
