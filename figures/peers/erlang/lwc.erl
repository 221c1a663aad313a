%% The three programs of light-weight concurrency over Erlang's processes. Processes share nothing, so an
%% MVar is a process too: it holds the value and answers those that take and put.
%%
%% usage: lwc kpn N ROUNDS | sieve LAST | sorter N | built N
%% Prints `name value` lines: nanoseconds of CPU time (ns), memory of a thread (bytes), threads, and the digest
%% of the answer. The MVars do not count as threads.
-module(lwc).
-export([main/1]).

make_mvar() -> spawn(fun empty/0).

empty() ->
    receive {put, From, Value} -> From ! done, full(Value) end.

full(Value) ->
    receive {take, From} -> From ! {taken, Value}, empty() end.

put_mvar(MVar, Value) ->
    MVar ! {put, self(), Value},
    receive done -> ok end.

take_mvar(MVar) ->
    MVar ! {take, self()},
    receive {taken, Value} -> Value end.

%% The mailbox of a process is a Fifo.
take_fifo() -> receive {value, Value} -> Value end.

%% Runs `Program`, which gets a function that creates a thread, until it sends its result; then ends all.
start(Program) ->
    Parent = self(),
    Program(Parent),
    receive {found, Found, Threads} -> {Found, Threads} end.

sieve(Last) ->
    start(fun(Parent) ->
        MI = make_mvar(), MO = make_mvar(),
        spawn(fun() -> integers(MI, 2) end),
        spawn(fun() -> sift(MI, MO) end),
        spawn(fun() -> primes(MO, Last, [], 2, Parent) end)
    end).

integers(Out, I) -> put_mvar(Out, I), integers(Out, I + 1).

primes(Inp, Last, Found, Threads, Parent) ->
    V = take_mvar(Inp),
    case V >= Last of
        true -> Parent ! {found, lists:reverse([V | Found]), Threads + 2};
        false -> primes(Inp, Last, [V | Found], Threads + 1, Parent)
    end.

filter(N, Inp, Out) ->
    V = take_mvar(Inp),
    case V rem N of
        0 -> ok;
        _ -> put_mvar(Out, V)
    end,
    filter(N, Inp, Out).

sift(Inp, Out) ->
    V = take_mvar(Inp),
    put_mvar(Out, V),
    Mid = make_mvar(),
    spawn(fun() -> filter(V, Inp, Mid) end),
    sift(Mid, Out).

kpn(N) ->
    start(fun(Parent) ->
        [M2, M3, M5, M23, M235] = [make_mvar() || _ <- lists:seq(1, 5)],
        Times = [spawn(fun() -> times(A, M) end) || {A, M} <- [{2, M2}, {3, M3}, {5, M5}]],
        spawn(fun() -> x(N, M235, Times, [], Parent) end),
        spawn(fun() -> put_mvar(M235, 1) end),
        spawn(fun() -> merge(M2, M3, M23) end),
        spawn(fun() -> merge(M23, M5, M235) end)
    end).

x(1, Inp, _, Found, Parent) -> Parent ! {found, lists:reverse([take_mvar(Inp) | Found]), 7};
x(N, Inp, Fifos, Found, Parent) ->
    V = take_mvar(Inp),
    [Fifo ! {value, V} || Fifo <- Fifos],
    x(N - 1, Inp, Fifos, [V | Found], Parent).

times(A, Out) -> put_mvar(Out, A * take_fifo()), times(A, Out).

merge(Inp1, Inp2, Out) -> merge(Inp1, Inp2, Out, take_mvar(Inp1), take_mvar(Inp2)).

merge(Inp1, Inp2, Out, V1, V2) ->
    put_mvar(Out, min(V1, V2)),
    if
        V1 < V2 -> merge(Inp1, Inp2, Out, take_mvar(Inp1), V2);
        V1 > V2 -> merge(Inp1, Inp2, Out, V1, take_mvar(Inp2));
        true -> merge(Inp1, Inp2, Out)
    end.

shuffled(N) -> shuffled(N, 16#2545f4914f6cdd1d).

shuffled(0, _) -> [];
shuffled(N, State0) ->
    State1 = (State0 bxor (State0 bsl 13)) band 16#ffffffffffffffff,
    State2 = State1 bxor (State1 bsr 7),
    State = (State2 bxor (State2 bsl 17)) band 16#ffffffffffffffff,
    [State rem 1000000 | shuffled(N - 1, State)].

sorter(N, OnlyBuild) ->
    Threads = N * (N - 1) div 2,
    Inputs = [make_mvar() || _ <- lists:seq(1, N)],
    %% The wires of which the numbers are in order already, the last one first.
    Outputs = columns(Inputs),
    case OnlyBuild of
        true -> {[], Threads};
        false ->
            start(fun(Parent) ->
                spawn(fun() -> Parent ! {found, [take_mvar(Wire) || Wire <- Outputs], Threads + 2} end),
                spawn(fun() -> lists:foreach(fun({I, V}) -> put_mvar(I, V) end, lists:zip(Inputs, shuffled(N))) end)
            end)
    end.

columns([]) -> [];
columns([First | Rest]) -> lists:reverse(lists:foldl(fun column/2, [First], Rest)).

%% A wire goes through the sorted wires, the last one first: the larger number stays, the smaller goes on.
column(Wire, Sorted) ->
    {Smallest, Others} = lists:foldl(fun(X, {Y, Done}) ->
        Lo = make_mvar(), Hi = make_mvar(),
        spawn(fun() -> comparator(X, Y, Lo, Hi) end),
        {Lo, [Hi | Done]}
    end, {Wire, []}, Sorted),
    lists:reverse([Smallest | Others]).

comparator(X, Y, Lo, Hi) ->
    A = take_mvar(X),
    B = take_mvar(Y),
    put_mvar(Lo, min(A, B)),
    put_mvar(Hi, max(A, B)).

%% A line of the process's status, in bytes.
memory(Name) ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kib]} = re:run(Text, Name ++ ":\\s*(\\d+)", [{capture, [1], list}]),
    list_to_integer(Kib) * 1024.

rounds(1, Program) -> Program();
rounds(N, Program) -> Program(), rounds(N - 1, Program).

measure(Rounds, Program) ->
    Before = memory("VmRSS"),
    {Start, _} = statistics(runtime),
    {Found, Threads} = rounds(Rounds, Program),
    {End, _} = statistics(runtime),
    Digest = lists:foldl(fun(V, Sum) -> (Sum * 31 + V rem 1000003) rem 1000003 end, 0, Found),
    io:format("ns ~.1f~nbytes ~.3f~nthreads ~b~ndigest ~b~n", [
        (End - Start) * 1.0e6 / Rounds, max(0, memory("VmHWM") - Before) / Threads, Threads, Digest
    ]).

main([Program, Size | Rounds]) ->
    N = list_to_integer(Size),
    case Program of
        "kpn" -> measure(list_to_integer(hd(Rounds)), fun() -> kpn(N) end);
        "sieve" -> measure(1, fun() -> sieve(N) end);
        "sorter" -> measure(1, fun() -> sorter(N, false) end);
        "built" -> measure(1, fun() -> sorter(N, true) end)
    end,
    erlang:halt(0, [{flush, true}]).
