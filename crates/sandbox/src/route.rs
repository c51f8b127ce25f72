//! Which resource, object and subresource a path names; it answers none of them.

use super::resource::{self, Resource, Scope};

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// Discovery and health: not about objects.
    Plain(&'a str),
    /// An object or a collection.
    Objects(Target<'a>),
}

/// An object or a collection of one resource.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) resource: &'static Resource,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
}

impl PartialEq for Target<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.resource, other.resource)
            && (self.namespace, self.name, self.subresource)
                == (other.namespace, other.name, other.subresource)
    }
}

impl Eq for Target<'_> {}

/// Reads a path; none when nothing is served there.
pub(super) fn parse(path: &str) -> Option<Route<'_>> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => objects("", version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => objects(group, version, rest),
        _ => Some(Route::Plain(path)),
    }
}

fn objects<'a>(group: &str, version: &str, rest: &[&'a str]) -> Option<Route<'a>> {
    let of_namespace_itself = |below: &str| matches!(below, "status" | "finalize");
    let (namespace, rest) = match rest {
        ["namespaces", namespace, below, tail @ ..] if !of_namespace_itself(below) || !tail.is_empty() => {
            (*namespace, &rest[2..])
        }
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, "", ""),
        [plural, name] => (plural, *name, ""),
        [plural, name, subresource] => (plural, *name, *subresource),
        _ => return None,
    };
    let resource = resource::find(group, plural).filter(|row| row.version == version)?;
    let scoped = match resource.scope {
        Scope::Cluster => namespace.is_empty(),
        Scope::Namespaced => !namespace.is_empty() || name.is_empty(),
    };
    let served = subresource.is_empty() || resource.subresources.contains(&subresource);
    (scoped && served).then_some(Route::Objects(Target { resource, namespace, name, subresource }))
}

#[cfg(test)]
mod tests {
    use super::{Route, Target, parse};
    use crate::resource;

    fn target(path: &str) -> Option<Target<'_>> {
        match parse(path)? {
            Route::Objects(target) => Some(target),
            Route::Plain(_) => None,
        }
    }

    #[test]
    fn paths_name_what_a_real_server_serves() {
        let pods = resource::known("", "pods");
        let cases = [
            ("/api/v1/pods", Some((pods, "", "", ""))),
            ("/api/v1/namespaces/a/pods/p/binding", Some((pods, "a", "p", "binding"))),
            ("/api/v1/namespaces/a/status", Some((resource::known("", "namespaces"), "", "a", "status"))),
            ("/api/v1/namespaces/status/pods", Some((pods, "status", "", ""))),
            (
                "/apis/apps/v1/namespaces/a/deployments",
                Some((resource::known("apps", "deployments"), "a", "", "")),
            ),
            ("/api/v1/pods/p", None),
            ("/api/v1/namespaces/a/nodes", None),
            ("/api/v1/namespaces/a/pods/p/teapot", None),
            ("/apis/apps/v2/deployments", None),
        ];
        for (path, want) in cases {
            let want = want.map(|(resource, namespace, name, subresource)| Target {
                resource,
                namespace,
                name,
                subresource,
            });
            assert_eq!(target(path), want, "{path}");
        }
    }
}
