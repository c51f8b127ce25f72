//! The curves of a replay as a picture, in one colour for each policy: allocated and fragmented GPUs by demand, and below, where pods that ask for
//! most cards waited, how many of these were bound how soon.

use anyhow::{Result, anyhow};
use plotters::{coord::Shift, prelude::*};

use super::report::{Point, Replay};

const WIDTH: u32 = 960;
/// The height of one chart.
const HEIGHT: u32 = 540;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The picture as SVG.
pub(super) fn svg(replay: &Replay) -> Result<String> {
    let mut text = String::new();
    draw(replay, &mut text).map_err(|error| anyhow!("the curves can't be drawn: {error}"))?;
    Ok(text)
}

fn draw(replay: &Replay, text: &mut String) -> Drawn {
    let longest = longest_wait(replay);
    let height = if longest > 0.0 { 2 * HEIGHT } else { HEIGHT };
    let area = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let (by_demand, waits) = area.split_vertically(HEIGHT);
    draw_by_demand(replay, &by_demand)?;
    if longest > 0.0 {
        draw_waits(replay, longest, &waits)?;
    }
    area.present()?;
    Ok(())
}

fn draw_by_demand(replay: &Replay, area: &Area<'_>) -> Drawn {
    let most = replay.policies.iter().flat_map(|policy| &policy.curve).map(|point| point.demand).max();
    let most = f64::from(most.unwrap_or(100).max(1));
    let mut chart = ChartBuilder::on(area)
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
        let allocated = LineSeries::new(line(|point| point.allocated), colour.stroke_width(2));
        chart.draw_series(allocated)?.label(format!("{}: allocated", policy.name)).legend(legend(colour, 2));
        let thin = colour.mix(0.5);
        let fragmented = LineSeries::new(line(|point| point.fragmentation), thin.stroke_width(1));
        chart.draw_series(fragmented)?.label(format!("{}: fragmented", policy.name)).legend(legend(thin, 1));
    }
    chart.configure_series_labels().border_style(BLACK.mix(0.3)).background_style(WHITE).draw()?;
    Ok(())
}

/// The longest wait of a pod that was bound, in minutes.
fn longest_wait(replay: &Replay) -> f64 {
    let last = replay.policies.iter().filter_map(|policy| policy.bound_within.last());
    last.map(|point| point.minutes).fold(0.0, f64::max)
}

fn draw_waits(replay: &Replay, longest: f64, area: &Area<'_>) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..longest, 0.0..100.0)?;
    chart.configure_mesh().x_desc("minutes since arrival").y_desc("% of the largest pods bound").draw()?;
    for (number, policy) in replay.policies.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let points = policy.bound_within.iter().map(|point| (point.minutes, point.percent));
        let line = LineSeries::new(points, colour.stroke_width(2));
        chart.draw_series(line)?.label(policy.name.clone()).legend(legend(colour, 2));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

/// A piece of a line, as it stands before its name.
fn legend(colour: RGBAColor, width: u32) -> impl Fn((i32, i32)) -> PathElement<(i32, i32)> {
    move |(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], colour.stroke_width(width))
}
