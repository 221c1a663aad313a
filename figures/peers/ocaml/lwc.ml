(* The three programs of light-weight concurrency over Lwt, the library that the promise monad of
   the paper was taken from.

   usage: lwc kpn N ROUNDS | sieve LAST | sorter N | built N
   Prints `name value` lines: nanoseconds of CPU time (ns), memory of a thread (bytes), threads, and the digest
   of the answer. *)

open Lwt.Infix

let make_mvar = Lwt_mvar.create_empty
let put_mvar = Lwt_mvar.put
let take_mvar = Lwt_mvar.take

(* A thread runs in the main loop, and not at once. *)
let spawn thread = Lwt.async (fun () -> Lwt.pause () >>= thread)

let sieve last =
  let mi = make_mvar () and mo = make_mvar () in
  let threads = ref 3 and found = ref [] in
  let finished, finish = Lwt.wait () in
  let rec integers i () = put_mvar mi i >>= integers (i + 1) in
  let rec output () =
    take_mvar mo >>= fun v ->
    found := v :: !found;
    if v < last then output () else (Lwt.wakeup_later finish (); Lwt.return_unit)
  in
  let rec filter n inp out () =
    take_mvar inp >>= fun v ->
    (if v mod n <> 0 then put_mvar out v else Lwt.return_unit) >>= filter n inp out
  in
  let rec sift inp out () =
    take_mvar inp >>= fun v ->
    put_mvar out v >>= fun () ->
    let mid = make_mvar () in
    spawn (filter v inp mid);
    incr threads;
    sift mid out ()
  in
  spawn (integers 2);
  spawn (sift mi mo);
  spawn output;
  Lwt_main.run finished;
  (List.rev !found, !threads)

let kpn n =
  let f2, push2 = Lwt_stream.create ()
  and f3, push3 = Lwt_stream.create ()
  and f5, push5 = Lwt_stream.create () in
  let m2 = make_mvar () and m3 = make_mvar () and m5 = make_mvar () in
  let m23 = make_mvar () and m235 = make_mvar () in
  let found = ref [] in
  let finished, finish = Lwt.wait () in
  let rec x left () =
    take_mvar m235 >>= fun v ->
    found := v :: !found;
    if left = 1 then (Lwt.wakeup_later finish (); Lwt.return_unit)
    else (
      push2 (Some v);
      push3 (Some v);
      push5 (Some v);
      x (left - 1) ())
  in
  let rec times a inp out () = Lwt_stream.next inp >>= fun v -> put_mvar out (a * v) >>= times a inp out in
  let rec merge inp1 inp2 out () =
    take_mvar inp1 >>= fun v1 ->
    take_mvar inp2 >>= fun v2 -> go inp1 inp2 out v1 v2
  and go inp1 inp2 out (v1 : int) v2 =
    put_mvar out (min v1 v2) >>= fun () ->
    if v1 < v2 then take_mvar inp1 >>= fun v1 -> go inp1 inp2 out v1 v2
    else if v1 > v2 then take_mvar inp2 >>= fun v2 -> go inp1 inp2 out v1 v2
    else merge inp1 inp2 out ()
  in
  spawn (x n);
  spawn (times 2 f2 m2);
  spawn (times 3 f3 m3);
  spawn (times 5 f5 m5);
  spawn (fun () -> put_mvar m235 1);
  spawn (merge m2 m3 m23);
  spawn (merge m23 m5 m235);
  Lwt_main.run finished;
  (List.rev !found, 7)

let shuffled n =
  let open Int64 in
  let state = ref 0x2545f4914f6cdd1dL in
  Array.init n (fun _ ->
      state := logxor !state (shift_left !state 13);
      state := logxor !state (shift_right_logical !state 7);
      state := logxor !state (shift_left !state 17);
      to_int (unsigned_rem !state 1000000L))

let sorter only_build n =
  let wires = Array.init n (fun _ -> make_mvar ()) in
  let inputs = Array.copy wires in
  let comparator x y lo hi () =
    take_mvar x >>= fun (a : int) ->
    take_mvar y >>= fun b ->
    put_mvar lo (min a b) >>= fun () -> put_mvar hi (max a b)
  in
  for last = 1 to n - 1 do
    for at = last - 1 downto 0 do
      let lo = make_mvar () and hi = make_mvar () in
      spawn (comparator wires.(at) wires.(at + 1) lo hi);
      wires.(at) <- lo;
      wires.(at + 1) <- hi
    done
  done;
  let threads = n * (n - 1) / 2 in
  if only_build then ([], threads)
  else
    let found = ref [] in
    let finished, finish = Lwt.wait () in
    let rec output at () =
      if at = n then (Lwt.wakeup_later finish (); Lwt.return_unit)
      else
        take_mvar wires.(at) >>= fun v ->
        found := v :: !found;
        output (at + 1) ()
    in
    let numbers = shuffled n in
    let rec input at () = if at = n then Lwt.return_unit else put_mvar inputs.(at) numbers.(at) >>= input (at + 1) in
    spawn (output 0);
    spawn (input 0);
    Lwt_main.run finished;
    (List.rev !found, threads + 2)

(* A line of the process's status, in bytes. *)
let memory name =
  let file = open_in "/proc/self/status" in
  let rec find () =
    let line = input_line file in
    match String.split_on_char ':' line with
    | [ key; rest ] when key = name -> Scanf.sscanf rest " %f" (fun kib -> kib *. 1024.)
    | _ -> find ()
  in
  let bytes = find () in
  close_in file;
  bytes

let measure rounds program =
  let before = memory "VmRSS" in
  let start = Sys.time () in
  let last = ref ([], 1) in
  for _ = 1 to rounds do
    last := program ()
  done;
  let spent = Sys.time () -. start in
  let found, threads = !last in
  let digest = List.fold_left (fun sum v -> ((sum * 31) + (v mod 1000003)) mod 1000003) 0 found in
  Printf.printf "ns %f\nbytes %f\nthreads %d\ndigest %d\n"
    (spent *. 1e9 /. float rounds)
    (max 0. (memory "VmHWM" -. before) /. float threads)
    threads digest

let () =
  let name = Sys.argv.(1) in
  let n = int_of_string Sys.argv.(2) in
  match name with
  | "kpn" -> measure (int_of_string Sys.argv.(3)) (fun () -> kpn n)
  | "sieve" -> measure 1 (fun () -> sieve n)
  | "sorter" -> measure 1 (fun () -> sorter false n)
  | "built" -> measure 1 (fun () -> sorter true n)
  | _ -> exit 2
