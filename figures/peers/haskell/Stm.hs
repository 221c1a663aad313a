{-# LANGUAGE BangPatterns #-}

-- | GHC's transactions, on as many capabilities as @+RTS -N@ says (threaded runtime).
--
-- usage: Stm counter THREADS TOTAL | size READS WRITES TOTAL | disjoint THREADS TOTAL
--        Stm bank THREADS EVERY TOTAL | ping-pong TOTAL | herd WAITERS WRITES | parked THREADS
--        Stm list | tree | map, each with THREADS RANGE UPDATES TOTAL
-- What each of them does is said in @figures/src/child/stm@. Prints @name value@ lines: answers
-- that are checked, and nanoseconds of this process's CPU (ns) and of the wall's clock (wall_ns).
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception (evaluate)
import Control.Monad
import Data.Array (Array, listArray, (!))
import Data.Bits
import Data.IORef
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, stdout)

data Times = Times !Double !Double

now :: IO Times
now = do
  cpu <- getCPUTime
  wall <- getMonotonicTimeNSec
  pure (Times (fromIntegral cpu / 1000) (fromIntegral wall))

printTimes :: Times -> Times -> Int -> IO ()
printTimes (Times cpu0 wall0) (Times cpu1 wall1) operations = do
  putStrLn ("ns " ++ show ((cpu1 - cpu0) / fromIntegral operations))
  putStrLn ("wall_ns " ++ show ((wall1 - wall0) / fromIntegral operations))
  putStrLn ("rate " ++ show (fromIntegral operations * 1e3 / (wall1 - wall0)))

-- | The anonymous memory that is resident, counted for the question.
rssBytes :: IO Double
rssBytes = do
  text <- readFile "/proc/self/smaps_rollup"
  case [kib | ["Anonymous:", kib, "kB"] <- map words (lines text)] of
    kib : _ -> evaluate (1024 * read kib)
    [] -> ioError (userError "Linux tells a process its size")

times :: Int -> IO () -> IO ()
times n action = go n
  where
    go 0 = pure ()
    go i = action >> go (i - 1)
{-# INLINE times #-}

-- | A xorshift generator.
next :: Word64 -> Word64
next x = b `xor` (b `unsafeShiftL` 17)
  where
    a = x `xor` (x `unsafeShiftL` 13)
    b = a `xor` (a `unsafeShiftR` 7)
{-# INLINE next #-}

-- | The generator of one thread.
seed :: Int -> Word64
seed thread = iterate next (fromIntegral thread + 1) !! 16

-- | Forks the threads, spread over the capabilities, and waits for their results.
forks :: [IO a] -> IO [a]
forks bodies = do
  results <- forM (zip [0 ..] bodies) $ \(i, body) -> do
    result <- newEmptyMVar
    _ <- forkOn i (body >>= putMVar result)
    pure result
  mapM takeMVar results

countOne :: TVar Int -> IO ()
countOne cell = atomically $ do
  value <- readTVar cell
  writeTVar cell $! value + 1
{-# INLINE countOne #-}

counter :: Int -> Int -> IO ()
counter threads total = do
  cell <- newTVarIO 0
  first <- now
  _ <- forks (replicate threads (times (total `div` threads) (countOne cell)))
  end <- now
  printTimes first end total
  readTVarIO cell >>= \count -> putStrLn ("count " ++ show count)

disjoint :: Int -> Int -> IO ()
disjoint threads total = do
  first <- now
  counts <- forks . replicate threads $ do
    cell <- newTVarIO 0
    times (total `div` threads) (countOne cell)
    readTVarIO cell
  end <- now
  printTimes first end total
  putStrLn ("count " ++ show (sum counts))

size :: Int -> Int -> Int -> IO ()
size readCount writeCount total = do
  variables <- replicateM readCount (newTVarIO (1 :: Int))
  let (written, others) = splitAt writeCount variables
      body = do
        a <- foldM write 0 written
        foldM (\ !s v -> (s +) <$> readTVar v) a others
      write !s v = do
        value <- readTVar v
        writeTVar v $! value + 1
        pure (s + value)
      go :: Int -> Int -> IO Int
      go 0 !s = pure s
      go n !s = do
        one <- atomically body
        go (n - 1) (s + one)
  first <- now
  total' <- go total 0
  end <- now
  printTimes first end total
  values <- mapM readTVarIO variables
  putStrLn ("sum " ++ show (total' + sum values))

accounts, balance :: Int
accounts = 1024
balance = 1000

bank :: Int -> Int -> Int -> IO ()
bank threads every total = do
  variables <- replicateM accounts (newTVarIO balance)
  let table = listArray (0, accounts - 1) variables :: Array Int (TVar Int)
      auditAll = atomically (foldM (\ !s v -> (s +) <$> readTVar v) 0 variables)
      transfer x = atomically $ do
        let from = fromIntegral (x .&. 1023)
            drawn = fromIntegral ((x `unsafeShiftR` 20) .&. 1023)
            to = if drawn == from then (drawn + 1) .&. 1023 else drawn
        there <- readTVar (table ! from)
        when (there > 0) $ do
          writeTVar (table ! from) $! there - 1
          here <- readTVar (table ! to)
          writeTVar (table ! to) $! here + 1
      part thread = go 1 (seed thread) 0 0
        where
          go :: Int -> Word64 -> Int -> Int -> IO (Int, Int)
          go operation !x !audits !wrong
            | operation > total `div` threads = pure (audits, wrong)
            | every /= 0 && operation `rem` every == 0 = do
                s <- auditAll
                go (operation + 1) x (audits + 1) (if s == accounts * balance then wrong else wrong + 1)
            | otherwise = do
                let !y = next x
                transfer y
                go (operation + 1) y audits wrong
  first <- now
  results <- forks (map part [0 .. threads - 1])
  end <- now
  printTimes first end total
  putStrLn ("audits " ++ show (sum (map fst results)))
  putStrLn ("wrong " ++ show (sum (map snd results)))
  values <- mapM readTVarIO variables
  putStrLn ("total " ++ show (sum values))

pingPong :: Int -> IO ()
pingPong total = do
  ping <- newTMVarIO (0 :: Int)
  pong <- newEmptyTMVarIO
  let pass from to = do
        token <- atomically (takeTMVar from)
        atomically (putTMVar to $! token + 1)
  first <- now
  done <- newEmptyMVar
  _ <- forkIO (times total (pass pong ping) >> putMVar done ())
  times total (pass ping pong)
  takeMVar done
  end <- now
  printTimes first end total
  atomically (takeTMVar ping) >>= \token -> putStrLn ("token " ++ show token)

herd :: Int -> Int -> IO ()
herd waiters writes = do
  level <- newTVarIO 0
  finished <- newIORef (0 :: Int)
  times waiters . void . forkIO $ do
    atomically (readTVar level >>= check . (>= writes))
    modifyIORef' finished (+ 1)
  yield
  first <- now
  forM_ [1 .. writes] $ \write -> atomically (writeTVar level write) >> yield
  end <- now
  printTimes first end writes
  awaitAll finished waiters
  readIORef finished >>= \count -> putStrLn ("finished " ++ show count)

-- | Yields until the count has reached the goal. All threads run on one capability.
awaitAll :: IORef Int -> Int -> IO ()
awaitAll count goal = do
  value <- readIORef count
  when (value < goal) (yield >> awaitAll count goal)

parked :: Int -> IO ()
parked threads = do
  started <- newIORef 0
  finished <- newIORef 0
  open <- newTVarIO False
  before <- rssBytes
  times threads . void . forkIO $ do
    modifyIORef' started (+ 1)
    atomically (readTVar open >>= check)
    modifyIORef' finished (+ 1)
  awaitAll started threads
  after <- rssBytes
  putStrLn ("bytes " ++ show ((after - before) / fromIntegral threads))
  gone <- readIORef finished
  putStrLn ("live " ++ show (threads - gone))
  Times first _ <- now
  atomically (writeTVar open True)
  awaitAll finished threads
  Times end _ <- now
  putStrLn ("wake_ns " ++ show ((end - first) / fromIntegral threads))
  readIORef finished >>= \count -> putStrLn ("finished " ++ show count)

-- | A set: whether a key is in it, insert and remove (whether it changed), and all keys.
data Set = Set (Int -> STM Bool) (Int -> STM Bool) (Int -> STM Bool) (STM [Int])

sets :: Set -> Int -> Int -> Int -> Int -> IO ()
sets (Set has insert remove keys) threads range updates total = do
  forM_ [key | key <- [0 .. range - 1], key `div` 2 `mod` 2 == 0] (atomically . insert)
  let part thread = go (total `div` threads) (seed thread) 0 0
        where
          go :: Int -> Word64 -> Int -> Int -> IO (Int, Int)
          go 0 _ !found !changed = pure (found, changed)
          go n !x !found !changed = do
            let !y = next x
                !drawn = fromIntegral (y `rem` fromIntegral range) :: Int
                !key = drawn - drawn `rem` threads + thread
                !die = fromIntegral ((y `unsafeShiftR` 32) `rem` 100) :: Int
            if die * 2 < updates
              then atomically (insert key) >>= \yes -> go (n - 1) y found (if yes then changed + 1 else changed)
              else
                if die < updates
                  then atomically (remove key) >>= \yes -> go (n - 1) y found (if yes then changed + 1 else changed)
                  else atomically (has key) >>= \yes -> go (n - 1) y (if yes then found + 1 else found) changed
  first <- now
  results <- forks (map part [0 .. threads - 1])
  end <- now
  printTimes first end total
  putStrLn ("found " ++ show (sum (map fst results)))
  putStrLn ("changed " ++ show (sum (map snd results)))
  kept <- atomically keys
  putStrLn ("sum " ++ show (sum kept))

-- | A sorted list.
data List = End | Item !Int !(TVar List)

newList :: IO Set
newList = do
  start <- newTVarIO End
  let has key = go start
        where
          go link = do
            list <- readTVar link
            case list of
              Item k rest | k < key -> go rest
              Item k _ -> pure (k == key)
              End -> pure False
      insert key = go start
        where
          go link = do
            list <- readTVar link
            case list of
              Item k rest | k < key -> go rest
              Item k _ | k == key -> pure False
              _ -> do
                rest <- newTVar list
                writeTVar link (Item key rest)
                pure True
      remove key = go start
        where
          go link = do
            list <- readTVar link
            case list of
              Item k rest | k < key -> go rest
              Item k rest | k == key -> readTVar rest >>= writeTVar link >> pure True
              _ -> pure False
      keys = go start
        where
          go link = do
            list <- readTVar link
            case list of
              Item k rest -> (k :) <$> go rest
              End -> pure []
  pure (Set has insert remove keys)

-- | A red-black tree: the key, whether it is red, and the two links.
data Tree = Nil | Node !Int !(TVar Bool) !(TVar Tree) !(TVar Tree)

data Side = L | R

other :: Side -> Side
other L = R
other R = L

child :: Side -> Tree -> TVar Tree
child L (Node _ _ left _) = left
child R (Node _ _ _ right) = right
child _ Nil = error "no node has no child"
{-# INLINE child #-}

isRed :: Tree -> STM Bool
isRed (Node _ red _ _) = readTVar red
isRed Nil = pure False

paint :: Tree -> Bool -> STM ()
paint (Node _ red _ _) = writeTVar red
paint Nil = const (pure ())

-- | What an insertion below a link has left: nothing to do; a new red root; a red root with a red
-- child on this side.
data Grown = Present | Done | RootRed | RedRed !Side

insertBelow :: TVar Tree -> Int -> STM Grown
insertBelow link key = do
  tree <- readTVar link
  case tree of
    Nil -> do
      node <- Node key <$> newTVar True <*> newTVar Nil <*> newTVar Nil
      writeTVar link node
      pure RootRed
    Node k red _ _
      | k == key -> pure Present
      | otherwise -> do
          let side = if key < k then L else R
          grown <- insertBelow (child side tree) key
          case grown of
            RootRed -> (\r -> if r then RedRed side else Done) <$> readTVar red
            RedRed inner -> mendRed link tree side inner
            _ -> pure grown

-- | The child on this side is red, and so is its child on the inner side.
mendRed :: TVar Tree -> Tree -> Side -> Side -> STM Grown
mendRed link tree side inner = do
  low <- readTVar (child side tree)
  uncle <- readTVar (child (other side) tree)
  uncleRed <- isRed uncle
  paint tree True
  case (uncleRed, side, inner) of
    (True, _, _) -> paint low False >> paint uncle False >> pure RootRed
    (_, L, L) -> single low
    (_, R, R) -> single low
    _ -> do
      top <- readTVar (child inner low)
      readTVar (child side top) >>= writeTVar (child inner low)
      readTVar (child (other side) top) >>= writeTVar (child side tree)
      writeTVar (child side top) low
      writeTVar (child (other side) top) tree
      writeTVar link top
      paint top False
      pure Done
  where
    single low = do
      readTVar (child (other side) low) >>= writeTVar (child side tree)
      writeTVar (child (other side) low) tree
      writeTVar link low
      paint low False
      pure Done

-- | What a removal below a link has left: nothing to do, or a tree with one black node less.
data Shrunk = Absent | Whole | Short

removeBelow :: TVar Tree -> Int -> STM Shrunk
removeBelow link key = do
  tree <- readTVar link
  case tree of
    Nil -> pure Absent
    Node k red left right
      | key == k -> do
          l <- readTVar left
          r <- readTVar right
          case (l, r) of
            (Nil, _) -> takeOut link tree r
            (_, Nil) -> takeOut link tree l
            _ -> do
              (heir, shrunk) <- takeLeast right
              readTVar left >>= writeTVar (child L heir)
              readTVar right >>= writeTVar (child R heir)
              readTVar red >>= paint heir
              writeTVar link heir
              mendIf shrunk link heir R
      | otherwise -> do
          let side = if key < k then L else R
          shrunk <- removeBelow (child side tree) key
          mendIf shrunk link tree side

-- | Puts the only child of a node in its place.
takeOut :: TVar Tree -> Tree -> Tree -> STM Shrunk
takeOut link tree only = do
  writeTVar link only
  red <- isRed tree
  onlyRed <- isRed only
  case (red, onlyRed) of
    (True, _) -> pure Whole
    (_, True) -> paint only False >> pure Whole
    _ -> pure Short

takeLeast :: TVar Tree -> STM (Tree, Shrunk)
takeLeast link = do
  tree <- readTVar link
  left <- readTVar (child L tree)
  case left of
    Nil -> do
      right <- readTVar (child R tree)
      shrunk <- takeOut link tree right
      pure (tree, shrunk)
    _ -> do
      (least, shrunk) <- takeLeast (child L tree)
      mended <- mendIf shrunk link tree L
      pure (least, mended)

mendIf :: Shrunk -> TVar Tree -> Tree -> Side -> STM Shrunk
mendIf Short link tree side = mendShort link tree side
mendIf shrunk _ _ _ = pure shrunk

-- | The tree below on this side has one black node less than the other.
mendShort :: TVar Tree -> Tree -> Side -> STM Shrunk
mendShort link tree side = do
  sibling <- readTVar (child (other side) tree)
  siblingRed <- isRed sibling
  if siblingRed
    then do
      readTVar (child side sibling) >>= writeTVar (child (other side) tree)
      writeTVar (child side sibling) tree
      writeTVar link sibling
      paint sibling False
      paint tree True
      mendShort (child side sibling) tree side
    else do
      near <- readTVar (child side sibling)
      far <- readTVar (child (other side) sibling)
      nearRed <- isRed near
      farRed <- isRed far
      treeRed <- isRed tree
      case (farRed, nearRed) of
        (True, _) -> do
          writeTVar (child (other side) tree) near
          writeTVar (child side sibling) tree
          writeTVar link sibling
          paint sibling treeRed
          paint tree False
          paint far False
          pure Whole
        (_, True) -> do
          readTVar (child side near) >>= writeTVar (child (other side) tree)
          readTVar (child (other side) near) >>= writeTVar (child side sibling)
          writeTVar (child side near) tree
          writeTVar (child (other side) near) sibling
          writeTVar link near
          paint near treeRed
          paint tree False
          pure Whole
        _ -> do
          paint sibling True
          when treeRed (paint tree False)
          pure (if treeRed then Whole else Short)

newTree :: IO Set
newTree = do
  root <- newTVarIO Nil
  let has key = go root
        where
          go link = do
            tree <- readTVar link
            case tree of
              Nil -> pure False
              Node k _ left right -> case compare key k of
                EQ -> pure True
                LT -> go left
                GT -> go right
      insert key = do
        grown <- insertBelow root key
        case grown of
          Present -> pure False
          RootRed -> readTVar root >>= (`paint` False) >> pure True
          _ -> pure True
      remove key = (\shrunk -> case shrunk of Absent -> False; _ -> True) <$> removeBelow root key
      keys = go root
        where
          go link = do
            tree <- readTVar link
            case tree of
              Nil -> pure []
              Node k _ left right -> (\l r -> l ++ k : r) <$> go left <*> go right
  pure (Set has insert remove keys)

-- | A hash map with a variable for each bucket, two keys in each on average when it is full. The
-- keys hash to themselves.
newMap :: Int -> IO Set
newMap range = do
  let buckets = max 1 (range `div` 2)
  variables <- replicateM buckets (newTVarIO [])
  let table = listArray (0, buckets - 1) variables :: Array Int (TVar [Int])
      bucket key = table ! (key `rem` buckets)
      has key = elem key <$> readTVar (bucket key)
      insert key = do
        list <- readTVar (bucket key)
        let !new = not (elem key list)
        when new (writeTVar (bucket key) (key : list))
        pure new
      remove key = do
        list <- readTVar (bucket key)
        let !old = elem key list
        when old (writeTVar (bucket key) $! forced (filter (/= key) list))
        pure old
      keys = concat <$> mapM readTVar variables
  pure (Set has insert remove keys)
  where
    forced list = length list `seq` list

-- | Not in the main thread, which is bound to an OS thread, so that a switch to it is expensive.
main :: IO ()
main = runInUnboundThread $ do
  arguments <- getArgs
  let numbers = map read (drop 1 arguments) :: [Int]
      on set = case numbers of
        [threads, range, updates, total] -> set >>= \s -> sets s threads range updates total
        _ -> exitWith (ExitFailure 2)
  case (take 1 arguments, numbers) of
    (["counter"], [threads, total]) -> counter threads total
    (["size"], [readCount, writeCount, total]) -> size readCount writeCount total
    (["disjoint"], [threads, total]) -> disjoint threads total
    (["bank"], [threads, every, total]) -> bank threads every total
    (["ping-pong"], [total]) -> pingPong total
    (["herd"], [waiters, writes]) -> herd waiters writes
    (["parked"], [threads]) -> parked threads
    (["list"], _) -> on newList
    (["tree"], _) -> on newTree
    (["map"], _ : range : _) -> on (newMap range)
    _ -> exitWith (ExitFailure 2)
  hFlush stdout
