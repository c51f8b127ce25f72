//! What the pages list, beside the sources that have it: Events, annotations, options, rights, reasons, and settings that they quote.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use berth::cli::Cli;
use clap::CommandFactory as _;
use serde_json::Value;

use super::{Page, block, none, pages, root, shown};

/// Every Rust file below a folder of `src`, with its text up to its test module.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut waiting = vec![root().join("src").join(folder)];
    let mut found = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
            found.push((path, text));
        }
    }
    found
}

/// The first cell of each row of a page's tables that is code, without what follows the name in it.
fn first_cells(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split('`').next());
    names.map(|name| name.split(' ').next().unwrap().to_owned()).collect()
}

/// The texts between backticks, code blocks left out.
fn spans(page: &str) -> Vec<String> {
    let mut spans = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    spans
}

#[test]
fn the_metrics_page_lists_every_event() {
    let tell = fs::read_to_string(root().join("src/cluster/write/tell.rs")).unwrap();
    let (_, words) = tell.split_once("\nfn words(").unwrap();
    let (words, _) = words.split_once("\n}\n").unwrap();
    let words: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let after = ["\"Normal\", \"", "\"Warning\", \""].into_iter().flat_map(|kind| words.split(kind).skip(1));
    let sent: BTreeSet<String> = after.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    assert!(sent.len() > 10, "{sent:?}");
    let page = Page::read("docs/metrics.md").text;
    let (_, table) = page.split_once("| Event | on | when |").expect("the table is there");
    let (table, _) = table.split_once("\n\n").expect("it ends");
    assert_eq!(first_cells(table), sent);
}

/// Names of resources, not of annotations, have pages of their own.
const RESOURCES: [&str; 6] = [
    "nvidia.com/gpu",
    "nvidia.com/priority",
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
    "koordinator.sh/",
    "huawei.com/npu-",
];

fn is_resource(name: &str) -> bool {
    let by_name = RESOURCES.iter().any(|start| name.starts_with(start));
    let of_volcano = ["number", "memory", "memory-percentage", "cores", ""];
    let vgpu = name.strip_prefix("volcano.sh/vgpu-").is_some_and(|rest| of_volcano.contains(&rest));
    (by_name || vgpu) && name != "koordinator.sh/gpu-isolation-provider"
}

/// The annotations and labels that the sources name as constants.
fn named() -> BTreeSet<String> {
    let groups = [
        "berth.dev/",
        "hami.io/",
        "nvidia.com/",
        "volcano.sh/",
        "koordinator.sh/",
        "scheduling.k8s.io/",
        "scheduling.x-k8s.io/",
        "huawei.com/",
        "cluster-autoscaler.kubernetes.io/",
        "karpenter.sh/",
    ];
    let mut named = BTreeSet::new();
    for (_, text) in ["dialect", "admission", "cluster", "scheduling/model", "scheduling/plugin"]
        .into_iter()
        .flat_map(sources)
    {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // The type of a list has a semicolon of its own.
        let constants = text.split("const ").skip(1).filter_map(|rest| {
            let (head, value) = rest.split_once(" = ")?;
            let value = value.split(if head.contains("; ") { "];" } else { ";" }).next()?;
            head.contains("&str").then_some(value)
        });
        let values = constants.flat_map(|constant| {
            constant.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        });
        let key = |value: &String| {
            let (_, name) = value.split_once('/').unwrap_or_default();
            groups.iter().any(|group| value.contains(group) && value.split('/').count() == 2)
                && !name.is_empty()
                // What names only begin with.
                && !name.ends_with('-')
                && !value.contains(char::is_whitespace)
        };
        named.extend(values.filter(|value| key(value) && !is_resource(value)));
    }
    named
}

#[test]
fn the_page_of_annotations_lists_those_that_the_program_knows() {
    let listed = first_cells(&Page::read("docs/annotations.md").text);
    let named = named();
    assert!(named.len() > 60, "{named:#?}");
    let missing: Vec<_> = named.iter().filter(|name| !listed.contains(*name)).cloned().collect();
    none("annotations that docs/annotations.md lacks", &missing);
    let unknown: Vec<_> = listed.iter().filter(|name| !named.contains(*name)).cloned().collect();
    none("annotations that no source file has", &unknown);
}

#[test]
fn the_page_of_serve_lists_every_option_with_its_default() {
    let page = Page::read("docs/serve.md").text;
    let mut command = Cli::command();
    command.build();
    let serve = command.find_subcommand("serve").expect("the command is there");
    let mut options = BTreeSet::new();
    let mut faults = Vec::new();
    for argument in serve.get_arguments().filter(|argument| argument.get_id() != "help") {
        let option = format!("--{}", argument.get_long().expect("each has a long name"));
        let row = page.lines().find(|line| {
            line.strip_prefix(&format!("| `{option}")).is_some_and(|rest| rest.starts_with(['`', ' ']))
        });
        let takes_value = argument.get_action().takes_values();
        let default =
            argument.get_default_values().iter().filter(|_| takes_value).map(|value| value.to_str().unwrap());
        for default in default {
            if row.is_none_or(|row| row.split('|').nth(2).unwrap().trim() != format!("`{default}`")) {
                faults.push(format!("{option}: default {default}: {row:?}"));
            }
        }
        options.insert(option);
    }
    none("options that docs/serve.md shows with another default", &faults);
    let listed: BTreeSet<_> = first_cells(&page).into_iter().filter(|name| name.starts_with("--")).collect();
    assert_eq!(listed, options);
}

/// Reasons that Kubernetes writes.
const OF_KUBERNETES: [&str; 2] = ["ContainerCreating", "UnexpectedAdmissionError"];

#[test]
fn the_reasons_that_runbooks_name_are_in_the_sources() {
    let is_reason = |span: &String| {
        let humps = span.chars().filter(char::is_ascii_uppercase).count();
        humps > 1
            && span.chars().all(|c| c.is_ascii_alphanumeric())
            && span.starts_with(|c: char| c.is_ascii_uppercase())
    };
    let known: String =
        ["scheduling", "cluster"].into_iter().flat_map(sources).map(|(_, text)| text).collect();
    let mut faults = Vec::new();
    let mut named = 0;
    for page in pages().iter().filter(|page| page.path.starts_with("docs/runbooks")) {
        for reason in spans(&page.text).into_iter().filter(is_reason) {
            named += 1;
            if !known.contains(&format!("\"{reason}\"")) && !OF_KUBERNETES.contains(&reason.as_str()) {
                faults.push(format!("{}: {reason}", page.path.display()));
            }
        }
    }
    assert!(named > 8, "{named}");
    none("reasons that no source file has", &faults);
}

/// Every resource that a role names, `*` and Berth's own verb included.
#[test]
fn the_page_of_the_manifests_lists_every_right() {
    let page = Page::read("deploy/helm/berth/manifests/README.md").text;
    let (_, table) = page.split_once("| right | on |").expect("the table is there");
    let listed: BTreeSet<_> = spans(table.split_once("\n\n").unwrap().0).into_iter().collect();
    let roles = fs::read_to_string(root().join("webhook-config/20-rbac.yaml")).unwrap();
    let roles: Vec<Value> = serde_saphyr::from_multiple(&roles).unwrap();
    let entries = roles.iter().filter_map(|role| role["rules"].as_array()).flatten();
    let granted: BTreeSet<String> = entries
        .filter_map(|rule| rule["resources"].as_array())
        .flatten()
        .map(|resource| resource.as_str().unwrap().to_owned())
        .collect();
    assert!(granted.len() > 20, "{granted:?}");
    let missing: Vec<_> = granted.iter().filter(|right| !listed.contains(*right)).cloned().collect();
    none("rights that the page lacks", &missing);
}

/// API versions that their projects serve no longer, with what is served instead.
const GONE: [(&str, &str); 3] = [
    ("kueue.x-k8s.io/v1beta1", "v1beta2, since Kueue v0.17"),
    ("resource.k8s.io/v1alpha", "v1"),
    ("policy/v1beta1", "v1"),
];

#[test]
fn no_page_and_no_example_uses_a_version_that_is_not_served() {
    let mut texts: Vec<(PathBuf, String)> = pages().into_iter().map(|page| (page.path, page.text)).collect();
    let mut waiting = vec![root().join("examples")];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            texts.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    let mut faults = Vec::new();
    for (path, text) in texts {
        for (gone, served) in GONE.iter().filter(|(gone, _)| text.contains(&format!("apiVersion: {gone}"))) {
            faults.push(format!("{}: {gone} is served no longer: {served}", path.display()));
        }
    }
    none("versions that are gone", &faults);
}

/// Keys of a pod that settings have too.
const OF_PODS: [&str; 1] = ["schedulerName: default-scheduler"];

#[test]
fn every_setting_that_the_pages_quote_is_one_that_berth_takes() {
    let settings = serde_json::to_value(berth::config::Config::default()).unwrap();
    let keys: BTreeSet<&String> = settings.as_object().unwrap().keys().collect();
    let mut faults = Vec::new();
    let mut quoted = 0;
    for page in pages().iter().filter(|page| page.path != Path::new("CHANGELOG.md")) {
        for line in page.text.lines().filter(|line| !line.trim_start().starts_with("error:")) {
            for span in line.split('`').skip(1).step_by(2) {
                let Some((key, value)) = span.split_once(": ") else { continue };
                let mut path = key.split('.');
                if !path.clone().next().is_some_and(|first| keys.contains(&first.to_owned()))
                    || value.contains('…')
                {
                    continue;
                }
                quoted += 1;
                let first = path.next_back().unwrap();
                let text =
                    path.rev().fold(format!("{first}: {value}"), |inner, key| format!("{key}: {{{inner}}}"));
                let is_of_pods = OF_PODS.contains(&span) && !line.contains("berth.yaml");
                if let Err(error) = berth::config::Config::parse(&text, "berth.yaml").map(drop)
                    && !is_of_pods
                {
                    faults.push(format!("{}: `{span}`: {error}", page.path.display()));
                }
            }
        }
    }
    assert!(quoted > 20, "{quoted}");
    none("settings that Berth refuses", &faults);
}

/// Without the image, `berth manifests` prints the one of this version, which would take the place of the one that is installed.
#[test]
fn what_the_pages_pipe_into_kubectl_apply_names_the_image() {
    let commands: Vec<_> = pages()
        .iter()
        .flat_map(|page| {
            block::of_language(&page.text, "console")
                .into_iter()
                .map(|text| (page.path.clone(), text))
                .collect::<Vec<_>>()
        })
        .flat_map(|(path, text)| {
            text.lines().map(|line| (path.clone(), line.trim().to_owned())).collect::<Vec<_>>()
        })
        .filter(|(_, line)| line.starts_with("$ berth manifests") && line.contains("| kubectl apply"))
        .collect();
    assert!(commands.len() > 6 && shown().len() > commands.len(), "{commands:?}");
    let resets = commands.iter().filter(|(_, line)| !line.contains("--image "));
    none(
        "commands that replace the image",
        &resets.map(|(path, line)| format!("{}: {line}", path.display())).collect::<Vec<_>>(),
    );
}
