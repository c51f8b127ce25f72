//! The arguments of plugins: what the settings say to one plugin alone, as in `pluginConfig` of kube-scheduler's configuration.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

/// The arguments of each plugin that is given some: at most one value of each type, which the plugin defines. What carries them knows none of
/// these types, so that a plugin with arguments is no other file's concern.
#[derive(Clone, Default)]
pub struct PluginArguments(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl PluginArguments {
    /// These and those of one more plugin.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, arguments: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(arguments));
        self
    }

    /// Those of the plugin that has this type of arguments; `None`: it is given none.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for PluginArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PluginArguments({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Shape(u8);

    #[test]
    fn a_plugin_finds_its_own_arguments_among_those_of_others() {
        let arguments = PluginArguments::default().with("another's").with(Shape(1)).with(Shape(2));
        assert_eq!(arguments.get(), Some(&Shape(2)));
        assert_eq!(arguments.get(), Some(&"another's"));
        assert_eq!(arguments.get::<u32>(), None);
    }
}
