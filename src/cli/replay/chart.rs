//! The curves of a replay as a picture: allocated and fragmented GPUs by demand, a pair of lines for each policy.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::report::{Point, Replay};

const SIZE: (u32, u32) = (960, 540);

/// The picture as SVG.
pub(super) fn svg(replay: &Replay) -> Result<String> {
    let mut text = String::new();
    draw(replay, &mut text).map_err(|error| anyhow!("the curves can't be drawn: {error}"))?;
    Ok(text)
}

fn draw(replay: &Replay, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let most = replay.policies.iter().flat_map(|policy| &policy.curve).map(|point| point.demand).max();
    let most = f64::from(most.unwrap_or(100).max(1));
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..most, 0.0..100.0)?;
    chart.configure_mesh().x_desc("GPUs asked for, % of all").y_desc("% of all GPUs").draw()?;
    for (number, policy) in replay.policies.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let line = |value: fn(&Point) -> f64| {
            policy.curve.iter().map(move |point| (f64::from(point.demand), value(point)))
        };
        let legend =
            move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 20, y)], colour.stroke_width(2));
        let allocated = LineSeries::new(line(|point| point.allocated), colour.stroke_width(2));
        chart.draw_series(allocated)?.label(format!("{}: allocated", policy.name)).legend(legend);
        let thin = colour.mix(0.5);
        let legend =
            move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 20, y)], thin.stroke_width(1));
        let fragmented = LineSeries::new(line(|point| point.fragmentation), thin.stroke_width(1));
        chart.draw_series(fragmented)?.label(format!("{}: fragmented", policy.name)).legend(legend);
    }
    chart.configure_series_labels().border_style(BLACK.mix(0.3)).background_style(WHITE).draw()?;
    area.present()?;
    Ok(())
}
