//! How much a request takes of a capacity, and what a policy refuses.

use berth::{
    dra::capacity::{Capacity, WrittenAmount},
    object::{Amount, Quantity, resource_slice::DeviceCapacity},
};
use serde_json::{Value, json};

use super::table::{Case, Table, Verdict};

#[test]
fn dra_consumable_capacity() {
    let table = Table { file: "dra_consumable_capacity.json", differences: &[], not_served: &[] };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    match case.test.as_str() {
        "cases_consumed" => {
            let capacity =
                capacity(&json!({"value": input["capacity_value"], "requestPolicy": input["policy"]}));
            Verdict::of(&taken(&capacity, &input["requested"]), &amount(&input["consumed"]))
        }
        "cases_violates" => {
            let capacity = capacity(&json!({"value": "1", "requestPolicy": input["policy"]}));
            Verdict::of(&capacity.refuses(amount(&input["value"])), &input["violates"].as_bool().unwrap())
        }
        "cases_from_request" => {
            let published = input["capacity"].as_object().unwrap();
            let of = |(name, published): (&String, &Value)| {
                (name.clone(), taken(&capacity(published), &input["requests"][name]))
            };
            let consumed = input["consumed"].as_object().unwrap();
            let wanted: Vec<_> = consumed.iter().map(|(name, value)| (name.clone(), amount(value))).collect();
            Verdict::of(&published.iter().map(of).collect::<Vec<_>>(), &wanted)
        }
        other => panic!("{other}: a list that this adapter does not know"),
    }
}

fn capacity(value: &Value) -> Capacity {
    let capacity: DeviceCapacity = serde_json::from_value(value.clone()).unwrap();
    Capacity::read(&capacity).unwrap()
}

fn taken(capacity: &Capacity, requested: &Value) -> Amount {
    let requested = requested.as_str().map(|text| WrittenAmount::read(&Quantity::from(text)).unwrap());
    capacity.taken(requested.as_ref()).amount
}

fn amount(value: &Value) -> Amount {
    Quantity::from(value.as_str().unwrap()).amount().unwrap()
}
