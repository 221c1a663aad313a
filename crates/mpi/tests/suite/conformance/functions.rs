//! Functions that other ranks execute.

use selvedge_mpi::{ANY, ErrorClass, Functions};

super::cases! {
    /// A rank calls a function at each of the others, and at itself.
    functions_are_called(3, world) {
        let mut functions = Functions::new();
        let join = functions.register("join", async |words: (String, String)| words.0 + &words.1);
        let length = functions.register("length", async |word: String| word.len());
        let pool = functions.start(&world).await?;
        for rank in 0..3 {
            let joined = pool.call(rank, join, ("warp ".to_string(), world.rank().to_string())).await?;
            assert_eq!(joined, format!("warp {}", world.rank()));
        }
        assert_eq!(pool.submit(length, "weft".to_string()).await.unwrap()?, 4);
        let error = pool.call(3, length, String::new()).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Rank, "call"));
        pool.finish().await?;
    }

    /// Every rank maps at the same time, and the results come in the order of the arguments.
    functions_are_mapped(3, world) {
        let own = world.rank() as u64;
        let mut functions = Functions::new();
        let square = functions.register("square", move |number: u64| async move { (number * number, own) });
        let pool = functions.start(&world).await?;
        let results = pool.map(square, 0..50).await?;
        for (number, (result, executed)) in results.into_iter().enumerate() {
            assert_eq!(result, (number * number) as u64);
            assert!(executed < 3);
        }
        assert_eq!(pool.map(square, []).await?, []);
        pool.finish().await?;
    }

    /// The first two tasks of rank 0 wait for its last one, so another rank has to steal that.
    tasks_are_stolen(3, world) {
        let mut functions = Functions::new();
        let there = world.clone();
        let task = functions.register("task", move |number: u32| {
            let world = there.clone();
            async move {
                match number {
                    0 | 1 => drop(world.recv::<()>(ANY, number).await),
                    3 => {
                        // Wherever these tasks are.
                        for (rank, tag) in (0..3).flat_map(|rank| [(rank, 0), (rank, 1)]) {
                            let _ = world.send(rank, tag, ()).await;
                        }
                    }
                    _ => {}
                }
                world.rank()
            }
        });
        let pool = functions.start(&world).await?;
        if world.rank() == 0 {
            let executed = pool.map(task, 0..12).await?;
            assert_eq!(executed.len(), 12);
            assert_ne!((executed[0], executed[1], executed[3]), (0, 0, 0));
        }
        pool.finish().await?;
    }

    /// A panic is an error of the call, and the rank goes on.
    a_function_that_panics(2, world) {
        let mut functions = Functions::new();
        let check = functions.register("check", async |number: i32| {
            assert!(number > 0, "{number} is too small");
        });
        let pool = functions.start(&world).await?;
        let error = pool.call(1, check, -5).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Function);
        assert!(error.to_string().contains("on rank 1: -5 is too small"), "{error}");
        let error = pool.map(check, [1, 2, -3]).await.unwrap_err();
        assert!(error.to_string().contains("-3 is too small"), "{error}");
        pool.call(1, check, 5).await?;
        pool.finish().await?;
    }

    /// Ranks that have registered different functions are told so.
    functions_that_differ(2, world) {
        let mut functions = Functions::new();
        match world.rank() {
            0 => {
                functions.register("same", async |number: i32| number);
            }
            _ => {
                functions.register("same", async |number: u32| number);
            }
        }
        let error = functions.start(&world).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Mismatch);
        assert!(error.to_string().contains("[same: i32 -> i32]"), "{error}");
        assert!(error.to_string().contains("[same: u32 -> u32]"), "{error}");
    }
}
