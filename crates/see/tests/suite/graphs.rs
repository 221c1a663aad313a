//! What is drawn of graphs of steps.

use selvedge_cnc::schedulers::OneByOne;
use selvedge_cnc::{Graph, Items, graph};
use selvedge_see::{graph_dot, graph_svg};

/// Ten steps that put squares, and two steps that wait for squares which no step puts.
fn squares<'g>(graph: &'g Graph<'g, '_>) {
    let (numbers, wishes) = (graph.tags::<u32>("numbers < \"10\""), graph.tags::<u32>("wishes"));
    let squares = graph.items_in("squares", Items::dense(20_u32));
    graph.prescribe(numbers, "square", move |n, step| step.put(squares, n, n * n));
    graph.prescribe(wishes, "wish", move |n, step| step.get(squares, n).map(|_| ()));
    graph
        .initialize(|env| {
            (0..10).try_for_each(|n| env.put_tag(numbers, n))?;
            [3, 17, 18].into_iter().try_for_each(|n| env.put_tag(wishes, n))
        })
        .unwrap();
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn a_drawing_has_each_collection_and_each_use() {
    let (svg, dot) = graph(|graph| {
        graph.record(0);
        squares(graph);
        graph.run(&OneByOne).unwrap_err();
        (graph_svg(&graph.picture()), graph_dot(&graph.picture()))
    });
    // The environment and 2 steps, and the tip of arrows.
    assert_eq!([count(&svg, "<ellipse"), count(&svg, "<rect"), count(&svg, "<text")], [3, 1, 6]);
    // 2 prescriptions, 2 puts of tags, a put and a get.
    assert_eq!((count(&svg, "marker-end"), count(&svg, "stroke-dasharray=\"2 3\"")), (6, 2));
    assert!(svg.contains(">numbers &lt; &quot;10&quot;</text>"), "{svg}");
    assert_eq!((count(&dot, " -> "), count(&dot, "style=dotted")), (6, 2));
    assert!(dot.contains(r#"tags0 [label="numbers < \"10\"", shape=triangle];"#), "{dot}");
    assert!(dot.contains("\n  items0 -> step2;\n"), "{dot}");
}

#[test]
fn a_drawing_of_a_monitor_has_its_numbers() {
    let [begin, end] = graph(|graph| {
        let monitor = graph.monitor();
        squares(graph);
        let begin = graph_svg(&monitor.picture());
        graph.run(&OneByOne).unwrap_err();
        [begin, graph_svg(&monitor.picture())]
    });
    let notes = |svg: &str| {
        let lines = svg.lines().filter(|line| line.contains("fill=\"gray\""));
        lines.map(|line| line.split(['<', '>']).nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    // A collection without puts has no number.
    assert_eq!(notes(&begin), ["0 of 10", "0 of 3", "10 put", "3 put"]);
    assert_eq!(notes(&end), ["10 of 10", "1 of 3, 2 wait", "10 put", "10 put", "3 put"]);
}

#[test]
fn declared_puts_are_dashed_until_one_is_noted() {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let (even, odd) = (graph.items::<u32, ()>("even"), graph.items::<u32, ()>("odd"));
        graph
            .prescribe_async(tags, "put", move |n, step| async move {
                step.put(if n % 2 == 0 { even } else { odd }, n, ())
            })
            .makes(even, |&n| n)
            .makes(odd, |&n| n);
        let arrows = || {
            let (dot, svg) = (graph_dot(&graph.picture()), graph_svg(&graph.picture()));
            let arrow = |items| ["", " [style=dashed]"].map(|style| format!("-> items{items}{style};\n"));
            let in_dot = [0, 1].map(|items| arrow(items).map(|arrow| dot.contains(&arrow)));
            (in_dot, count(&svg, "stroke-dasharray=\"6 3\""))
        };
        assert_eq!(arrows(), ([[false, true], [false, true]], 2));
        graph.record(0);
        graph.initialize(|env| env.put_tag(tags, 4)).unwrap();
        graph.run(&OneByOne).unwrap();
        // The put into the other collection was not noted.
        assert_eq!(arrows(), ([[true, false], [false, true]], 1));
    });
}
