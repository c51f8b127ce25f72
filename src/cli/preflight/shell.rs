//! Words and commands of a POSIX shell, as texts.
//!
//! It knows no command of the report: what is run, and in which order, is `commands`.

/// The command with these flags for each program in its pipe that talks to a cluster: `kubectl`, `berth preflight` and `helm`, which has a name of
/// its own for the context.
pub fn with_flags(command: &str, flags: &str) -> String {
    let stages = command.split(" | ").map(|stage| {
        let program = ["kubectl", "berth preflight", "helm"].into_iter().find(|program| {
            stage.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        program.map_or_else(
            || stage.to_owned(),
            |program| {
                let flags = if program == "helm" {
                    flags.replace(" --context ", " --kube-context ")
                } else {
                    flags.to_owned()
                };
                format!("{program}{flags}{}", &stage[program.len()..])
            },
        )
    });
    stages.collect::<Vec<_>>().join(" | ")
}

/// A word of a shell command: as it is where the shell takes it so, else in single quotes.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | ',' | '+' | '=')
    };
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_for_the_cluster_go_to_each_program_that_talks_to_it() {
        let with = |command| with_flags(command, " --context a");
        assert_eq!(
            with("berth manifests --config f | kubectl apply -f -"),
            "berth manifests --config f | kubectl --context a apply -f -"
        );
        assert_eq!(with("berth preflight --settings > f"), "berth preflight --context a --settings > f");
        assert_eq!(
            with("helm upgrade berth deploy/helm/berth"),
            "helm --kube-context a upgrade berth deploy/helm/berth"
        );
        assert_eq!(with("berth config --config f"), "berth config --config f");
        assert_eq!(with("sed 's/kubectl x/y/' f"), "sed 's/kubectl x/y/' f");
        assert_eq!(with_flags("kubectl get pods", ""), "kubectl get pods");
    }

    #[test]
    fn a_word_that_the_shell_would_take_apart_is_quoted() {
        assert_eq!(quoted("conf/berth.yaml"), "conf/berth.yaml");
        assert_eq!(quoted("my berth.yaml"), "'my berth.yaml'");
        assert_eq!(quoted("it's; $HOME"), r"'it'\''s; $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
