//! Classes of devices, and the selectors that they and requests have.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    dra::{
        AllocationError,
        cel::{DeviceValue, DeviceVariable, EvaluationError, Expression, Functions},
        device::PoolDevice,
    },
    object::{
        DeviceClass,
        device_class::{DeviceConfiguration, DeviceSelector},
    },
};

/// Classes by name.
#[derive(Clone, Debug, Default)]
pub struct CompiledClasses {
    by_name: BTreeMap<String, Result<Arc<CompiledClass>, AllocationError>>,
    functions: Functions,
}

/// A class.
#[derive(Clone, Debug)]
pub struct CompiledClass {
    pub(in crate::dra) name: String,
    pub(in crate::dra) selectors: Vec<Selector>,
    pub(in crate::dra) config: Vec<DeviceConfiguration>,
}

/// A test of devices.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The claim or the class that has it, with its kind.
    object: Arc<str>,
    field: String,
    expression: Expression,
}

impl CompiledClasses {
    /// Reads classes. One that can't be read is an error where a request asks for it.
    pub fn new<'a>(classes: impl IntoIterator<Item = &'a DeviceClass>) -> Self {
        let mut named = Self::default();
        for class in classes {
            named.set(class);
        }
        named
    }

    /// Takes in a class, new or changed.
    pub fn set(&mut self, class: &DeviceClass) {
        let read = CompiledClass::read(class, &self.functions).map(Arc::new);
        self.by_name.insert(class.metadata.name.clone(), read);
    }

    /// Takes a class out.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// What selectors can call.
    pub(in crate::dra) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The class of this name; `None`: there is none.
    pub(in crate::dra) fn named(&self, name: &str) -> Result<Option<Arc<CompiledClass>>, AllocationError> {
        self.by_name.get(name).cloned().transpose()
    }
}

impl CompiledClass {
    fn read(class: &DeviceClass, functions: &Functions) -> Result<Self, AllocationError> {
        let name = class.metadata.name.clone();
        let (object, field) = (format!("class {name}"), "spec.selectors");
        let selectors = Selector::read_all(&object, field, &class.spec.selectors, functions)?;
        Ok(Self { name, selectors, config: class.spec.config.clone() })
    }
}

impl Selector {
    /// Reads the selectors of a field.
    pub(super) fn read_all(
        object: &str,
        field: &str,
        selectors: &[DeviceSelector],
        functions: &Functions,
    ) -> Result<Vec<Self>, AllocationError> {
        let object: Arc<str> = object.into();
        let read = |(at, selector): (usize, &DeviceSelector)| {
            let field = format!("{field}[{at}]");
            let Some(cel) = &selector.cel else {
                let reason = "CEL expression empty (unsupported selector type?)".to_owned();
                return Err(AllocationError::Claim { claim: object.to_string(), field, reason });
            };
            match Expression::compile(&cel.expression, functions) {
                Ok(expression) => Ok(Self { object: object.clone(), field, expression }),
                Err(reason) => Err(AllocationError::Selector {
                    object: object.to_string(),
                    field,
                    reason: reason.into(),
                }),
            }
        };
        selectors.iter().enumerate().map(read).collect()
    }

    /// The attributes of devices that the expression can read, by their full names; `None`: it may be any.
    pub(super) fn attributes(&self) -> Option<&BTreeSet<String>> {
        self.expression.attributes()
    }

    /// What one evaluation may cost, as it was estimated.
    pub(in crate::dra) fn cost(&self) -> u64 {
        self.expression.cost()
    }

    /// What the expression makes of a device.
    pub(super) fn value(&self, device: &PoolDevice) -> Result<DeviceValue, AllocationError> {
        let view = device.view.variable.as_ref().map_err(|reason| self.error(device, reason.clone()))?;
        self.expression.value(view).map_err(|reason| self.error(device, reason))
    }

    /// Whether the device passes.
    pub(in crate::dra) fn admits(&self, device: &PoolDevice) -> Result<bool, AllocationError> {
        let view: &DeviceVariable =
            device.view.variable.as_ref().map_err(|reason| self.error(device, reason.clone()))?;
        self.expression.is_true(view).map_err(|reason| self.error(device, reason))
    }

    pub(super) fn error(&self, device: &PoolDevice, reason: EvaluationError) -> AllocationError {
        let (object, field) = (self.object.to_string(), self.field.clone());
        AllocationError::Evaluation { object, field, device: device.id.clone().into(), reason: reason.into() }
    }
}
