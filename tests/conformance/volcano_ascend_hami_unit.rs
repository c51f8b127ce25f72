//! Volcano's table of Ascend cards that HAMi's plugin shares, which have the same templates as HAMi's.

use berth::{
    device::{MiB, Mode},
    dialect::Dialect as _,
};
use serde_json::{Value, json};

use super::{
    hami_vendors::{
        ascend::{chip, configured, templates},
        family::Family,
    },
    table::{Table, Verdict},
    upstream::{node, number},
};

#[test]
fn volcano_ascend_hami_unit() {
    let table = Table {
        file: "volcano_ascend_hami_unit.json",
        differences: &[],
        not_served: &[("TestCalScore", "Volcano's own score; a node of Ascend cards scores as HAMi's do")],
    };
    table.check(|case| {
        let (data, config) = (&case.input, &case.context["config"]);
        match case.test.as_str() {
            "Test_trimMemory" => {
                let rounded = templates(config).rounded(MiB::new(number(data, "inputMem").into()));
                Verdict::of(&rounded.map_or(0, MiB::get), &number(data, "wantMem").into())
            }
            "Test_verifyReq" => {
                let family = Family { row: configured(config) };
                let request = &data["req"];
                let limits = json!({
                    "huawei.com/Ascend310P": number(request, "Nums").to_string(),
                    "huawei.com/Ascend310P-memory": number(request, "Memreq").to_string(),
                });
                let asked = family.ask(&json!({"resources": {"limits": limits}}), &Value::Null);
                Verdict::of(&json!(asked.is_ok()), &data["pass"])
            }
            "TestAscendDevice_GetNodeDevices_HAMiVnpuCore" => {
                let vendor = Family { row: chip("Ascend910A") }.vendor();
                let cards = vendor.inventory(&node(&data["annotations"])).unwrap().unwrap();
                Verdict::of(&json!(cards.cards()[0].mode == Mode::Soft), &data["expectSupport"])
            }
            other => panic!("no adapter for {other}"),
        }
    });
}
