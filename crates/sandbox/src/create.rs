//! How an object comes to be: defaults, admission, names and uids, validation, one write; it changes no existing object.

use super::{
    Workloads, admission,
    attributes::{Attributes, Operation},
    clock, defaults, object, pod_admission,
    reply::Reply,
    request::{Call, DryRun},
    resource::{self, Generation, Resource, Scope},
    server::Server,
    status::{Result, StatusError},
    validate, wire,
};
use serde_json::{Value, json};

/// Creates an object and answers 201 with it.
pub(super) async fn create(server: &Server, call: &Call, sent: Value) -> Result<Reply> {
    let resource = call.resource;
    let dry_run = call.query.dry_run()?;
    let mut object = wire::decode(resource, sent)?;
    check_sent(call, &object)?;
    if resource.scope == Scope::Namespaced {
        object::set_meta(&mut object, "namespace", Some(json!(call.namespace)));
    }
    check_namespace(server, call)?;
    defaults::apply(resource, &mut object);
    pod_admission::admit(server, resource, &mut object)?;
    let attributes = Attributes::new(call, Operation::Create, &object, None, dry_run);
    object = admission::mutate(server, &attributes, object, |object| {
        defaults::apply(resource, object);
        pod_admission::admit(server, resource, object)
    })
    .await?;
    begin(server, resource, &mut object);
    validate::new(resource, &object)?;
    remark(server, call, &object);
    let attributes = Attributes::new(call, Operation::Create, &object, None, dry_run);
    admission::validate(server, &attributes, Some(&object)).await?;
    let stored = keep(server, resource, object, dry_run)?;
    Ok(Reply::Json(201, wire::encode(resource, &stored)))
}

/// Says that no pods will come of a workload, where that is wanted.
fn remark(server: &Server, call: &Call, object: &Value) {
    let makes_pods =
        ["/spec/template", "/spec/jobTemplate"].iter().any(|path| object.pointer(path).is_some());
    if server.workloads == Workloads::Warned
        && makes_pods
        && matches!(call.resource.group, "apps" | "batch" | "")
    {
        let kind = call.resource.kind;
        call.warn(format!(
            "no controllers run in this cluster: no pods are made of this {kind}; create Pods"
        ));
    }
}

fn keep(server: &Server, resource: &'static Resource, object: Value, dry_run: DryRun) -> Result<Value> {
    let mut store = server.store();
    let key = super::store::key_of(&object);
    if store.get(resource, &key).is_some() {
        return Err(StatusError::already_exists(resource, &key.1));
    }
    match dry_run {
        DryRun::All => Ok(object),
        DryRun::Off => Ok((*store.put(resource, object)).clone()),
    }
}

fn check_sent(call: &Call, object: &Value) -> Result<()> {
    let namespace = object::namespace(object);
    if !namespace.is_empty() && namespace != call.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if !object::resource_version(object).is_empty() {
        let text = "resourceVersion should not be set on objects to be created";
        return Err(StatusError::new(500, "", text));
    }
    Ok(())
}

/// Refuses what would go into a namespace that is absent or going.
pub(super) fn check_namespace(server: &Server, call: &Call) -> Result<()> {
    if call.resource.scope == Scope::Cluster {
        return Ok(());
    }
    let namespace =
        server.get(resource::known("", "namespaces"), &(String::new(), call.namespace.clone()))?;
    if object::is_deleting(&namespace) {
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            call.namespace
        );
        return Err(StatusError::forbidden(call.resource, &call.name, &why));
    }
    Ok(())
}

/// Gives a new object what only the server may give: name, uid, time, generation, first status.
pub(super) fn begin(server: &Server, resource: &Resource, object: &mut Value) {
    let generate = object::text(object, "/metadata/generateName").to_owned();
    if object::name(object).is_empty() && !generate.is_empty() {
        let cut = generate.char_indices().nth(58).map_or(generate.len(), |(index, _)| index);
        let name = format!("{}{}", &generate[..cut], server.name_suffix());
        object::set_meta(object, "name", Some(json!(name)));
    }
    let now = server.clock.now();
    object::set_meta(object, "uid", Some(json!(server.uid())));
    object::set_meta(object, "creationTimestamp", Some(json!(clock::seconds(now))));
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
        object::set_meta(object, field, None);
    }
    let generation = (resource.generation == Generation::Counted).then(|| json!(1));
    object::set_meta(object, "generation", generation);
    defaults::first_status(resource, object, now);
}
