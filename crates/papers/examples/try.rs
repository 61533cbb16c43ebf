//! Trial.
fn main() {
    use lasthop_papers::*;
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "case" {
        let seeds: u32 = args[1].parse().unwrap();
        let obs = ();
        let mut bench = Bench::new(seeds, &obs);
        let ch: Vec<&str> = args[2..].iter().map(|s| s.as_str()).collect();
        let t = std::time::Instant::now();
        let runs = bench.runs(parsa98::TESTBED, &ch).unwrap();
        println!(
            "{:.2}s {} runs, complete {}",
            t.elapsed().as_secs_f64(),
            runs.all().len(),
            runs.complete()
        );
        let m = &runs.all()[0].metrics;
        let names: Vec<&str> = m.scalars().iter().map(|s| s.name).collect();
        for n in names {
            let s =
                runs.summary(|m| m.scalars().iter().find(|s| s.name == n).map_or(0.0, |s| s.value));
            if s.mean != 0.0 {
                println!("  {n} {:.4} ±{:.4}", s.mean, s.ci95);
            }
        }
        println!("  kbps {:.2}", runs.summary(|m| m.aggregate_throughput * 8e-3).mean);
        for f in &m.flows {
            println!(
                "  {}: originated {:?} dropped {:?} acks dropped {:?}",
                f.flow, f.originated, f.dropped, f.dropped_acks
            );
        }
        for s in &m.stages {
            println!(
                "  {} {:?} data {} damaged {} air {:?} rep {:?}",
                s.name, s.towards, s.data_packets, s.damaged_data, s.air, s.repeated
            );
        }
        return;
    }
    let seeds: u32 = args[0].parse().unwrap();
    let obs = ();
    let mut bench = Bench::new(seeds, &obs);
    std::fs::create_dir_all("/tmp/parsa").unwrap();
    for c in claims()
        .filter(|c| c.paper == "parsa98" && (args.len() == 1 || args.iter().any(|a| a == c.id)))
    {
        let t = std::time::Instant::now();
        let e = evaluate(c, &mut bench).unwrap();
        println!(
            "== {} {} {:?} ({:.1}s)",
            c.id,
            e.result.verdict.word(),
            c.place,
            t.elapsed().as_secs_f64()
        );
        let Some(f) = e.finding else { continue };
        for m in &f.measured {
            println!("   {} = {:.4} ±{:.4} {} [{:?}]", m.label, m.mean, m.ci, m.unit, m.published);
        }
        for (ok, w) in &f.conditions {
            println!("   {} {}", if *ok { "OK " } else { "NO " }, w);
        }
        for n in &f.notes {
            println!("   note: {n}");
        }
        for t in &f.tables {
            println!("{}", lasthop_report::table::render(t, lasthop_report::table::Look::Plain));
        }
        for (i, fig) in f.figures.iter().enumerate() {
            std::fs::write(format!("/tmp/parsa/{}-{i}.svg", c.id), &fig.svg).unwrap();
        }
    }
}
