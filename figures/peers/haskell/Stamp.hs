{-# LANGUAGE BangPatterns #-}

-- | The programs of STAMP over GHC's transactions (threaded runtime), written from their published
-- description. @figures/src/child/stamp@ has the same programs over Selvedge's transactions: the
-- same algorithms, the same random numbers, the same answers.
--
-- usage: Stamp vacation-tree THREADS QUERIES RANGE USERS ROWS ACTIONS | intruder-tree THREADS ATTACKS LONGEST FLOWS |
-- genome THREADS GENE SEGMENT SEGMENTS | kmeans THREADS CLUSTERS POINTS | labyrinth THREADS SIDE LAYERS PAIRS
-- @vacation-intmap@ and @intruder-intmap@ have each map in one variable.
-- Prints @name value@ lines: the milliseconds of the transactional part, and the answers that are
-- checked.
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM.TQueue
import Control.Monad
import Data.Array (Array)
import Data.Array.Base (numElements, unsafeAt, unsafeNewArray_, unsafeRead, unsafeWrite)
import Data.Array.IArray (bounds, elems, listArray, (!))
import Data.Array.IO (IOArray, IOUArray, freeze, newArray, newListArray, readArray, writeArray)
import Data.Array.ST (runSTUArray)
import Data.Array.Unboxed (UArray)
import Data.Bits
import qualified Data.ByteString.Char8 as Text
import Data.IORef
import qualified Data.IntMap.Strict as IntMap
import Data.List (foldl')
import qualified Data.Map.Strict as Map
import Data.Maybe (isJust)
import qualified Data.Set as Set
import Data.Word (Word64, Word8)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Conc (STM, TVar, atomically, newTVar, newTVarIO, readTVar, readTVarIO, writeTVar)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, stdout)

-- * The common parts of the programs

-- | A xorshift generator, as in @figures/src/child/stamp/mod.rs@.
type Random = Word64

seeded :: Int -> Random
seeded seed = (fromIntegral seed + 1) * 0x9E3779B97F4A7C15

next :: Random -> Random
next x = c
  where
    a = x `xor` (x `unsafeShiftL` 13)
    b = a `xor` (a `unsafeShiftR` 7)
    c = b `xor` (b `unsafeShiftL` 17)
{-# INLINE next #-}

-- | A number below the bound, and the generator after it.
below :: Random -> Int -> (Int, Random)
below random bound = (fromIntegral (((after `unsafeShiftR` 32) * fromIntegral bound) `unsafeShiftR` 32), after)
  where
    after = next random
{-# INLINE below #-}

exact :: Word64
exact = bit 48 - 1

mixed :: Word64 -> Word64 -> Word64
mixed total number = (total `xor` number) * 0x100000001B3

-- | Runs the part of each thread, spread over the capabilities, and waits for their results.
together :: Int -> (Int -> IO a) -> IO [a]
together threads part = do
  results <- forM [0 .. threads - 1] $ \i -> do
    result <- newEmptyMVar
    _ <- forkOn i (part i >>= putMVar result)
    pure result
  mapM takeMVar results

-- | Runs the action and prints the milliseconds that it took.
timed :: IO a -> IO a
timed action = do
  first <- getMonotonicTimeNSec
  result <- action
  end <- getMonotonicTimeNSec
  putStrLn ("ms " ++ show (fromIntegral (end - first) / 1e6 :: Double))
  pure result

times :: Int -> (Int -> IO ()) -> IO ()
times n action = go 0
  where
    go !i = when (i < n) $ action i >> go (i + 1)
{-# INLINE times #-}

say :: String -> Word64 -> IO ()
say name value = putStrLn (name ++ " " ++ show value)

-- * The ordered map: a treap, each place of which is a variable

type Place v = TVar (Node v)

data Node v = Leaf | Fork !Int v !(Place v) !(Place v)

priority :: Int -> Word64
priority key = fromIntegral key * 0x9E3779B97F4A7C15
{-# INLINE priority #-}

newTree :: IO (Place v)
newTree = newTVarIO Leaf

find :: Place v -> Int -> STM (Maybe v)
find !place !key = do
  node <- readTVar place
  case node of
    Leaf -> pure Nothing
    Fork there value less greater
      | there == key -> pure (Just value)
      | there < key -> find greater key
      | otherwise -> find less key

-- | Adds a key that the tree does not have.
insert :: Place v -> Int -> v -> STM ()
insert !place !key value = do
  node <- readTVar place
  case node of
    Fork there _ less greater
      | priority there >= priority key -> insert (if there < key then greater else less) key value
    _ -> do
      less <- newTVar Leaf
      greater <- newTVar Leaf
      split False node key less greater
      writeTVar place $! Fork key value less greater

-- | Distributes the keys of a node to two places: those below the key, and those above it.
split :: Bool -> Node v -> Int -> Place v -> Place v -> STM ()
split isSplit Leaf _ less greater = when isSplit $ writeTVar less Leaf >> writeTVar greater Leaf
split _ node@(Fork there _ inLess inGreater) !key !less !greater
  | there > key = do
      writeTVar greater node
      rest <- readTVar inLess
      split True rest key less inLess
  | otherwise = do
      writeTVar less node
      rest <- readTVar inGreater
      split True rest key inGreater greater

remove :: Place v -> Int -> STM ()
remove !place !key = do
  node <- readTVar place
  case node of
    Leaf -> pure ()
    Fork there _ less greater
      | there == key -> do
          one <- readTVar less
          other <- readTVar greater
          join2 place one other
      | there < key -> remove greater key
      | otherwise -> remove less key

-- | Makes one tree of two; all keys of the first are below those of the second.
join2 :: Place v -> Node v -> Node v -> STM ()
join2 !place Leaf rest = writeTVar place rest
join2 place rest Leaf = writeTVar place rest
join2 place one@(Fork oneKey _ _ oneGreater) other@(Fork otherKey _ otherLess _)
  | priority oneKey >= priority otherKey = do
      writeTVar place one
      rest <- readTVar oneGreater
      join2 oneGreater rest other
  | otherwise = do
      writeTVar place other
      rest <- readTVar otherLess
      join2 otherLess one rest

-- | The keys and values in their order, when no transaction runs.
entries :: Place v -> IO [(Int, v)]
entries root = go root []
  where
    go place rest = do
      node <- readTVarIO place
      case node of
        Leaf -> pure rest
        Fork key value less greater -> do
          after <- go greater rest
          go less ((key, value) : after)

-- * A map, in one of two representations

-- | How a map is represented: as the tree above, or as one variable with a map of @containers@.
data Shape = Trees | IntMaps

data Table v = Tree !(Place v) | Whole !(TVar (IntMap.IntMap v))

newTable :: Shape -> IO (Table v)
newTable Trees = Tree <$> newTree
newTable IntMaps = Whole <$> newTVarIO IntMap.empty

findRow :: Table v -> Int -> STM (Maybe v)
findRow (Tree place) key = find place key
findRow (Whole var) key = IntMap.lookup key <$> readTVar var
{-# INLINE findRow #-}

insertRow :: Table v -> Int -> v -> STM ()
insertRow (Tree place) key value = insert place key value
insertRow (Whole var) key value = do
  old <- readTVar var
  writeTVar var $! IntMap.insert key value old

removeRow :: Table v -> Int -> STM ()
removeRow (Tree place) key = remove place key
removeRow (Whole var) key = do
  old <- readTVar var
  writeTVar var $! IntMap.delete key old

allRows :: Table v -> IO [(Int, v)]
allRows (Tree place) = entries place
allRows (Whole var) = IntMap.toAscList <$> readTVarIO var

-- * vacation

data Mix = Mix {queries, range, users, rows, actions :: !Int}

data Stock = Stock {used, free, total, price :: !Int}

data Booking = Booking {bookedKind, bookedId, bookedPrice :: !Int}

data Wish = Wish {wishKind, wishId :: !Int, isMore :: !Bool, wishPrice :: !Int}

data Action = Reserve !Int [Wish] | Delete !Int | Change [Wish]

added :: Int
added = 100

kinds :: Int
kinds = 3

drawWishes :: Random -> Mix -> Int -> ([Wish], Random)
drawWishes random mix within = go (1 + count) after
  where
    (count, after) = below random (queries mix)
    go :: Int -> Random -> ([Wish], Random)
    go 0 r = ([], r)
    go n r0 =
      let (kind, r1) = below r0 kinds
          (row, r2) = below r1 within
          (more, r3) = below r2 2
          (steps, r4) = below r3 5
          (rest, end) = go (n - 1) r4
       in (Wish kind row (more == 0) (50 + 10 * steps) : rest, end)

drawAction :: Random -> Mix -> (Action, Random)
drawAction random mix
  | choice < users mix =
      let (wishes, r2) = drawWishes r1 mix within
          (customer, r3) = below r2 within
       in (Reserve customer wishes, r3)
  | even choice = let (customer, r2) = below r1 within in (Delete customer, r2)
  | otherwise = let (wishes, r2) = drawWishes r1 mix within in (Change wishes, r2)
  where
    within = max 1 (rows mix * range mix `div` 100)
    (choice, r1) = below random 100

data Agency = Agency
  { cars, rooms, flights :: !(Table (TVar Stock)),
    customers :: !(Table (TVar [Booking]))
  }

stocksOf :: Agency -> Int -> Table (TVar Stock)
stocksOf agency 0 = cars agency
stocksOf agency 1 = rooms agency
stocksOf agency _ = flights agency

newAgency :: Shape -> Mix -> IO Agency
newAgency shape mix = do
  agency <- Agency <$> newTable shape <*> newTable shape <*> newTable shape <*> newTable shape
  let go :: Random -> Int -> IO ()
      go !r !row = when (row < rows mix) $ do
        after <- foldM (stock row agency) r [0 .. kinds - 1]
        bookings <- newTVarIO []
        atomically (insertRow (customers agency) row bookings)
        go after (row + 1)
  go (seeded 0) 0
  pure agency
  where
    stock row agency r0 kind = do
      let (hundreds, r1) = below r0 5
          (steps, r2) = below r1 5
          count = 100 + 100 * hundreds
      var <- newTVarIO $! Stock 0 count count (50 + 10 * steps)
      atomically (insertRow (stocksOf agency kind) row var)
      pure r2

act :: Agency -> Action -> STM ()
act agency (Reserve customer wishes) = reserve agency customer wishes
act agency (Delete customer) = deleteCustomer agency customer
act agency (Change wishes) = mapM_ (change agency) wishes

data Offer = Offer !Booking !(TVar Stock) !Stock

reserve :: Agency -> Int -> [Wish] -> STM ()
reserve agency customer wishes = go wishes Nothing Nothing Nothing
  where
    go [] Nothing Nothing Nothing = pure ()
    go [] car room flight = do
      found <- findRow (customers agency) customer
      case found of
        Just bookings -> do
          old <- readTVar bookings
          new <- booked car =<< booked room =<< booked flight old
          writeTVar bookings new
        Nothing -> do
          new <- booked car =<< booked room =<< booked flight []
          bookings <- newTVar new
          insertRow (customers agency) customer bookings
    go (wish : rest) car room flight = do
      row <- findRow (stocksOf agency (wishKind wish)) (wishId wish)
      case row of
        Nothing -> go rest car room flight
        Just var -> do
          stock <- readTVar var
          let offer = Offer (Booking (wishKind wish) (wishId wish) (price stock)) var stock
              better old = if free stock > 0 && dearer old then Just offer else old
              dearer Nothing = True
              dearer (Just (Offer best _ _)) = bookedPrice best < price stock
          case wishKind wish of
            0 -> let !new = better car in go rest new room flight
            1 -> let !new = better room in go rest car new flight
            _ -> let !new = better flight in go rest car room new
    booked Nothing list = pure list
    booked (Just (Offer booking var stock)) list = do
      writeTVar var $! stock {used = used stock + 1, free = free stock - 1}
      pure (booking : list)

deleteCustomer :: Agency -> Int -> STM ()
deleteCustomer agency customer = do
  found <- findRow (customers agency) customer
  case found of
    Nothing -> pure ()
    Just var -> do
      bookings <- readTVar var
      forM_ bookings $ \booking -> do
        row <- findRow (stocksOf agency (bookedKind booking)) (bookedId booking)
        case row of
          Nothing -> error "a row that is used is not removed"
          Just there -> do
            stock <- readTVar there
            writeTVar there $! stock {used = used stock - 1, free = free stock + 1}
      removeRow (customers agency) customer

change :: Agency -> Wish -> STM ()
change agency wish = do
  let table = stocksOf agency (wishKind wish)
  row <- findRow table (wishId wish)
  case row of
    Nothing -> when (isMore wish) $ do
      var <- newTVar $! Stock 0 added added (wishPrice wish)
      insertRow table (wishId wish) var
    Just var -> do
      stock <- readTVar var
      if isMore wish
        then writeTVar var $! stock {free = free stock + added, total = total stock + added, price = wishPrice wish}
        else
          if total stock == added && free stock == added
            then removeRow table (wishId wish)
            else
              when (free stock >= added) $
                writeTVar var $! stock {free = free stock - added, total = total stock - added}

vacation :: Shape -> Int -> Mix -> IO ()
vacation shape clients mix = do
  agency <- newAgency shape mix
  let each = actions mix `div` clients
      client number = go (seeded (1 + number)) each
        where
          go :: Random -> Int -> IO Int
          go !_ 0 = pure each
          go random n = do
            let (action, after) = drawAction random mix
            atomically (act agency action)
            go after (n - 1)
  done <- timed (sum <$> together clients client)
  tables <- forM [0 .. kinds - 1] $ \kind -> do
    stocks <- allRows (stocksOf agency kind)
    forM stocks $ \(row, var) -> do
      stock <- readTVarIO var
      pure ((kind, row), stock)
  people <- allRows (customers agency) >>= mapM (\(person, var) -> (,) person <$> readTVarIO var)
  let stocks = concat tables
      booked = Map.fromListWith (+) [((bookedKind b, bookedId b), 1) | (_, list) <- people, b <- list]
      isWrong (row, stock) =
        used stock + free stock /= total stock || Map.findWithDefault 0 row booked /= used stock
      unknown = Map.size (Map.withoutKeys booked (Map.keysSet (Map.fromList stocks)))
      stockBits stock =
        fromIntegral (used stock)
          .|. fromIntegral (free stock) `unsafeShiftL` 16
          .|. fromIntegral (total stock) `unsafeShiftL` 32
          .|. fromIntegral (price stock) `unsafeShiftL` 48
      ofBooking b = fromIntegral (bookedId b * 1000 + bookedPrice b + bookedKind b)
      ofStocks = foldl' (\h ((_, row), stock) -> mixed (mixed h (fromIntegral row)) (stockBits stock)) 0 stocks
      ofPeople = foldl' (\h (person, list) -> mixed (mixed h (fromIntegral person)) (sum (map ofBooking list))) ofStocks people
  say "actions" (fromIntegral done)
  say "violations" (fromIntegral (length (filter isWrong stocks) + unknown))
  say "checksum" (ofPeople .&. exact)

-- * intruder

data Traffic = Traffic {attacksOf, longest, flowsOf :: !Int}

signatures :: [Text.ByteString]
signatures = map Text.pack ["overrun", "smurf", "root kit", "worm", "teardrop", "synflood", "xmas", "trojan"]

letters :: Int
letters = 12

data Packet = Packet {packetFlow, packetPlace, packetCount :: !Int, packetText :: !Text.ByteString}

-- | All packets in the order of their arrival.
arrivals :: Traffic -> IO (Array Int Packet)
arrivals traffic = do
  let (after, packets) = flows (seeded 0) 0 []
      count = length packets
  shuffled <- newListArray (0, count - 1) (reverse packets) :: IO (IOArray Int Packet)
  let shuffle :: Random -> Int -> IO ()
      shuffle !r !lastOne = when (lastOne >= 1) $ do
        let (at, end) = below r (lastOne + 1)
        one <- readArray shuffled lastOne
        other <- readArray shuffled at
        writeArray shuffled lastOne other
        writeArray shuffled at one
        shuffle end (lastOne - 1)
  shuffle after (count - 1)
  freeze shuffled
  where
    flows :: Random -> Int -> [Packet] -> (Random, [Packet])
    flows !r0 !flow packets
      | flow == flowsOf traffic = (r0, packets)
      | otherwise =
          let (more, r1) = below r0 (longest traffic)
              count = 1 + more
              (odd', r2) = below r1 64
              size = 8 * count + odd'
              (harmless, r3) = draw size r2
              (chance, r4) = below r3 100
              (text, r5) = if chance < attacksOf traffic then infected harmless size r4 else (harmless, r4)
              part number = number * size `div` count
              cut place = Packet flow place count (Text.take (part (place + 1) - part place) (Text.drop (part place) text))
           in flows r5 (flow + 1) (foldl' (\list place -> let !packet = cut place in packet : list) packets [0 .. count - 1])
    draw size r =
      let step :: Random -> (Char, Random)
          step r0 = let (letter, r1) = below r0 letters in (toEnum (fromEnum 'a' + letter), r1)
          states = take (size + 1) (iterate (snd . step) r)
          !text = Text.pack (map (fst . step) (take size states))
       in (text, last states)
    infected text size r0 =
      let (which, r1) = below r0 (length signatures)
          signature = signatures !! which
          (at, r2) = below r1 (size - Text.length signature + 1)
       in (Text.concat [Text.take at text, signature, Text.drop (at + Text.length signature) text], r2)

data Network = Network
  { packetsOf :: !(Array Int Packet),
    arriving :: !(TQueue Int),
    incomplete :: !(Table (TVar Fragments)),
    complete :: !(TQueue [Int])
  }

-- | The packets of a flow in the order of their places, and how many they are.
data Fragments = Fragments !Int ![Int]

assemble :: Network -> Int -> STM ()
assemble network number
  | packetCount packet == 1 = writeTQueue (complete network) [number]
  | otherwise = do
      found <- findRow (incomplete network) (packetFlow packet)
      case found of
        Nothing -> do
          var <- newTVar (Fragments 1 [number])
          insertRow (incomplete network) (packetFlow packet) var
        Just var -> do
          Fragments count before <- readTVar var
          let !after = put before
          if count + 1 < packetCount packet
            then writeTVar var $! Fragments (count + 1) after
            else do
              removeRow (incomplete network) (packetFlow packet)
              writeTQueue (complete network) after
  where
    packet = unsafeAt (packetsOf network) number
    put list@(other : rest)
      | packetPlace (unsafeAt (packetsOf network) other) < packetPlace packet = let !after = put rest in other : after
      | otherwise = number : list
    put [] = [number]

intruder :: Shape -> Int -> Traffic -> IO ()
intruder shape detectors traffic = do
  packets <- arrivals traffic
  network <- Network packets <$> newTQueueIO <*> newTable shape <*> newTQueueIO
  forM_ [0 .. length packets - 1] $ \number -> atomically (writeTQueue (arriving network) number)
  let isAttack fragments =
        let text = Text.concat [packetText (unsafeAt packets number) | number <- fragments]
         in any (`Text.isInfixOf` text) signatures
      detector :: Int -> IO (Int, Int)
      detector _ = go 0 0
        where
          go !flows !attacks = do
            arrived <- atomically (tryReadTQueue (arriving network))
            case arrived of
              Nothing -> pure (flows, attacks)
              Just number -> do
                atomically (assemble network number)
                whole <- atomically (tryReadTQueue (complete network))
                case whole of
                  Nothing -> go flows attacks
                  Just fragments -> go (flows + 1) (if isAttack fragments then attacks + 1 else attacks)
  found <- timed (together detectors detector)
  left <- allRows (incomplete network)
  say "flows" (fromIntegral (sum (map fst found)))
  say "attacks" (fromIntegral (sum (map snd found)))
  say "left" (fromIntegral (length left))

-- * genome

data Sequence = Sequence {geneOf, segmentOf, segmentsOf :: !Int}

chunk :: Int
chunk = 12

gene :: Sequence -> ([Int], Random)
gene wanted = (map fst (drop 1 drawn), snd (last drawn))
  where
    drawn = take (geneOf wanted + 1) (iterate (\(_, r) -> below r 4) (0, seeded 0))

-- | The segments, with two bits a nucleotide, the first nucleotide highest.
segments :: Sequence -> UArray Int Word64
segments wanted = listArray (0, length starts - 1) (map segment starts)
  where
    (nucleotides, random) = gene wanted
    whole = listArray (0, geneOf wanted - 1) nucleotides :: UArray Int Int
    final = geneOf wanted - segmentOf wanted
    drawn = map fst (drop 1 (take (segmentsOf wanted + 1) (iterate (\(_, r) -> below r (final + 1)) (0, random))))
    starts = drawn ++ [0, segmentOf wanted `div` 2 .. final - 1] ++ [final]
    segment :: Int -> Word64
    segment start = foldl' (\word at -> word `unsafeShiftL` 2 .|. fromIntegral (whole ! at)) 0 [start .. start + segmentOf wanted - 1]

free' :: Word64
free' = maxBound

-- | A hash table with a variable for each place, and by how many bits a hash is shifted.
data Hashed = Hashed !Int !(Array Int (TVar Word64))

newHashed :: Int -> IO Hashed
newHashed expected = do
  let bits = head [b | b <- [0 ..], bit b >= 2 * expected]
  places <- replicateM (bit bits) (newTVarIO free')
  pure (Hashed (64 - bits) (listArray (0, bit bits - 1) places))

-- | The first place to look at for a key.
firstPlace :: Hashed -> Word64 -> Int
firstPlace (Hashed shift' _) key = fromIntegral ((key * 0x9E3779B97F4A7C15) `unsafeShiftR` shift')
{-# INLINE firstPlace #-}

-- | The variable of a place, of which the numbers go round.
placeAt :: Hashed -> Int -> TVar Word64
placeAt (Hashed _ places) at = unsafeAt places (at .&. (numElements places - 1))
{-# INLINE placeAt #-}

-- | Adds a word, unless it is there.
insertWord :: Hashed -> Word64 -> Word64 -> STM ()
insertWord table key !word = go (firstPlace table key)
  where
    go !at = do
      let var = placeAt table at
      there <- readTVar var
      if there == free' then writeTVar var word else when (there /= word) $ go (at + 1)

data Entry = Entry
  { entrySegment :: !Word64,
    isHead :: !(TVar Bool),
    -- | The number of the segment that follows, and their overlap.
    following :: !(TVar (Int, Int)),
    -- | Of a tail, the head of its chain.
    headOf :: !(TVar Int),
    -- | Of a head, the tail of its chain.
    tailOf :: !(TVar Int)
  }

newEntry :: Int -> Word64 -> IO Entry
newEntry number segment = Entry segment <$> newTVarIO True <*> newTVarIO (-1, 0) <*> newTVarIO number <*> newTVarIO number

beginOf, endOf :: Int -> Word64 -> Int -> Word64
beginOf size segment overlap = segment `unsafeShiftR` (2 * (size - overlap))
endOf _ segment overlap = segment .&. (bit (2 * overlap) - 1)

-- | Links a tail with a head that begins as it ends. Whether there was one.
link :: Int -> Array Int Entry -> Hashed -> Int -> Int -> STM Bool
link size chains begins overlap number = go (firstPlace begins end)
  where
    this = unsafeAt chains number
    !end = endOf size (entrySegment this) overlap
    go !at = do
      found <- readTVar (placeAt begins at)
      if found == free' then pure False else try at (fromIntegral found)
    try at found
      | beginOf size (entrySegment other) overlap /= end = go (at + 1)
      | otherwise = do
          there <- readTVar (isHead other)
          if not there
            then go (at + 1)
            else do
              own <- readTVar (headOf this)
              if own == found
                then go (at + 1)
                else do
                  final <- readTVar (tailOf other)
                  writeTVar (following this) (found, overlap)
                  writeTVar (isHead other) False
                  writeTVar (tailOf (unsafeAt chains own)) final
                  writeTVar (headOf (unsafeAt chains final)) own
                  pure True
      where
        other = unsafeAt chains found

part' :: Int -> Int -> Int -> [Int]
part' things threads thread = [things * thread `div` threads .. things * (thread + 1) `div` threads - 1]

rebuild :: Int -> Int -> UArray Int Word64 -> Hashed -> IO [Int]
rebuild threads size given set@(Hashed _ places) = do
  let bounds' thread = numElements given * thread `div` threads
      fill thread = go (bounds' thread)
        where
          end = bounds' (thread + 1)
          go !at = when (at < end) $ do
            let after = min end (at + chunk)
            atomically (several at after)
            go after
          several !at !after = when (at < after) $ do
            let word = unsafeAt given at
            insertWord set word word
            several (at + 1) after
  _ <- together threads fill
  unique <- filter (/= free') <$> mapM readTVarIO (elems places)
  let count = length unique
  chains <- listArray (0, count - 1) <$> zipWithM newEntry [0 ..] unique :: IO (Array Int Entry)
  let own = map (part' count threads) [0 .. threads - 1]
      rounds 0 _ _ = pure ()
      rounds overlap heads tails = do
        begins <- newHashed (sum (map length heads))
        headsAfter <- together threads $ \thread -> do
          left <- filterM (readTVarIO . isHead . unsafeAt chains) (heads !! thread)
          forM_ left $ \number ->
            atomically (insertWord begins (beginOf size (entrySegment (unsafeAt chains number)) overlap) (fromIntegral number))
          pure left
        tailsAfter <- together threads $ \thread ->
          filterM (fmap not . atomically . link size chains begins overlap) (tails !! thread)
        rounds (overlap - 1) headsAfter tailsAfter
  rounds (size - 1) own own
  heads <- filterM (readTVarIO . isHead) (elems chains)
  let follow entry overlap = do
        let own' = [fromIntegral (entrySegment entry `unsafeShiftR` (2 * at) .&. 3) | at <- reverse [0 .. size - overlap - 1]]
        (after, shared) <- readTVarIO (following entry)
        if after < 0 then pure [own'] else (own' :) <$> follow (unsafeAt chains after) shared
  concat . concat <$> mapM (`follow` 0) heads

genome :: Int -> Sequence -> IO ()
genome threads wanted = do
  let !given = segments wanted
  set <- newHashed (geneOf wanted)
  rebuilt <- timed $ do
    rebuilt <- rebuild threads (segmentOf wanted) given set
    sum rebuilt `seq` pure rebuilt
  say "length" (fromIntegral (length rebuilt))
  say "checksum" (foldl' (\total nucleotide -> mixed total (fromIntegral nucleotide + 1)) 0 rebuilt .&. exact)

-- * kmeans

data Cloud = Cloud {clusters, points :: !Int}

dimensions, pointChunk, final' :: Int
dimensions = 32
pointChunk = 3
final' = 1000

-- | The coordinates of all points, one after the other.
cloudOf :: Cloud -> UArray Int Int
cloudOf cloud = listArray (0, points cloud * dimensions - 1) [places ! (of' at) + noise | (at, noise) <- zip [0 ..] (draws 1000 afterPlaces)]
  where
    draws bound r = map fst (drop 1 (iterate (\(_, state) -> below state bound) (0, r)))
    size = clusters cloud * dimensions
    placed = take (size + 1) (iterate (\(_, state) -> below state 200) (0, seeded 0))
    places = listArray (0, size - 1) (map fst (drop 1 placed)) :: UArray Int Int
    afterPlaces = snd (last placed)
    of' at = let (number, coordinate) = at `divMod` dimensions in number `mod` clusters cloud * dimensions + coordinate

nearest :: Int -> UArray Int Int -> UArray Int Int -> Int -> Int
nearest count centres given point = go 0 maxBound 0
  where
    !base = point * dimensions
    go :: Int -> Int -> Int -> Int
    go !centre !best !which
      | centre == count = which
      | far < best = go (centre + 1) far centre
      | otherwise = go (centre + 1) best which
      where
        far = distance (centre * dimensions) 0 0
    distance :: Int -> Int -> Int -> Int
    distance !at !i !total
      | i == dimensions = total
      | otherwise = let !apart = unsafeAt centres (at + i) - unsafeAt given (base + i) in distance at (i + 1) (total + apart * apart)

-- | The points of a cluster: how many, and the sum of each coordinate.
data Sums = Sums !Int !(UArray Int Int)

zero :: Sums
zero = Sums 0 (listArray (0, dimensions - 1) (replicate dimensions 0))

with :: UArray Int Int -> Int -> Sums -> Sums
with given point (Sums count sums) = Sums (count + 1) $ runSTUArray $ do
  new <- unsafeNewArray_ (0, dimensions - 1)
  let go !i = when (i < dimensions) $ do
        unsafeWrite new i (unsafeAt sums i + unsafeAt given (point * dimensions + i))
        go (i + 1)
  go 0
  pure new

kmeans :: Int -> Cloud -> IO ()
kmeans threads cloud = do
  let !given = cloudOf cloud
  own <- newArray (0, points cloud - 1) (-1) :: IO (IOUArray Int Int)
  sums <- listArray (0, clusters cloud - 1) <$> replicateM (clusters cloud) (newTVarIO zero) :: IO (Array Int (TVar Sums))
  nextPoint <- newTVarIO 0
  changed <- newTVarIO (0 :: Int)
  let assign centres _ = go 0
        where
          go !moved = do
            first <- atomically $ do
              at <- readTVar nextPoint
              writeTVar nextPoint $! at + pointChunk
              pure at
            if first >= points cloud
              then atomically $ readTVar changed >>= \total' -> writeTVar changed $! total' + moved
              else each first (min (points cloud) (first + pointChunk)) moved
          each !point !end !moved
            | point == end = go moved
            | otherwise = do
                let !cluster = nearest (clusters cloud) centres given point
                    var = unsafeAt sums cluster
                before <- unsafeRead own point
                unsafeWrite own point cluster
                atomically $ do
                  old <- readTVar var
                  writeTVar var $! with given point old
                each (point + 1) end (if before == cluster then moved else moved + 1)
      rounds :: UArray Int Int -> Int -> IO (UArray Int Int, Int)
      rounds centres number = do
        _ <- together threads (assign centres)
        moved <- readTVarIO changed
        after <- atomically $ do
          writeTVar nextPoint 0
          writeTVar changed 0
          all' <- forM (elems sums) $ \var -> do
            old <- readTVar var
            writeTVar var zero
            pure old
          pure $! listArray (bounds centres) (concat (zipWith (mean centres) [0 ..] all'))
        if moved * final' < points cloud then pure (after, number) else rounds after (number + 1)
      mean :: UArray Int Int -> Int -> Sums -> [Int]
      mean _ _ (Sums count total') | count > 0 = map (`quot` count) (elems total')
      mean centres cluster _ = [unsafeAt centres (cluster * dimensions + i) | i <- [0 .. dimensions - 1]]
      size = clusters cloud * dimensions
  (centres, number) <- timed (rounds (listArray (0, size - 1) (take size (elems given))) 1)
  say "rounds" (fromIntegral number)
  say "checksum" (foldl' (\total' at -> mixed total' (fromIntegral at)) 0 (elems centres) .&. exact)

-- * labyrinth

data Maze = Maze {side, layers, pairs :: !Int}

data Pair = Pair {pairNumber, from, to :: !Int}

taken :: Int
taken = maxBound

gridSize :: Maze -> Int
gridSize maze = side maze * side maze * layers maze

pairsOf :: Maze -> [Pair]
pairsOf maze = go (seeded 0) Set.empty 0
  where
    go _ _ number | number == pairs maze = []
    go r0 ends number =
      let (one, r1) = end r0 ends
          with1 = Set.insert one ends
          (other, r2) = end r1 with1
       in Pair number one other : go r2 (Set.insert other with1) (number + 1)
    end r ends = let (point, after) = below r (gridSize maze) in if Set.member point ends then end after ends else (point, after)

-- | The grid as a search sees it: of each point, one bit for each of the steps that stay in the
-- grid; and the differences between the numbers of neighbours.
data Board = Board !(UArray Int Word8) !Int !Int

newBoard :: Maze -> Board
newBoard maze = Board (listArray (0, gridSize maze - 1) (map inside [0 .. gridSize maze - 1])) (side maze) layer
  where
    layer = side maze * side maze
    inside point = sum [bit step | (step, True) <- zip [0 ..] stays]
      where
        (x, y, z) = (point `rem` side maze, point `quot` side maze `rem` side maze, point `quot` layer)
        stays = [x > 0, x + 1 < side maze, y > 0, y + 1 < side maze, z > 0, z + 1 < layers maze]

-- | Calls the action with the points beside a point, in one order, until it says True.
besideUntil :: Board -> Int -> (Int -> IO Bool) -> IO ()
besideUntil (Board insides row layer) point action =
  step 0 (point - 1) $
    step 1 (point + 1) $
      step 2 (point - row) $
        step 3 (point + row) $
          step 4 (point - layer) $
            step 5 (point + layer) (pure ())
  where
    !inside = unsafeAt insides point
    step number there rest
      | testBit inside number = action there >>= \done -> unless done rest
      | otherwise = rest
    {-# INLINE step #-}
{-# INLINE besideUntil #-}

-- | The shortest path of a pair through free points, with both ends. The grid has distances in it
-- afterwards.
search :: Board -> Pair -> IOUArray Int Int -> IOUArray Int Int -> IO (Maybe [Int])
search board@(Board insides row layer) pair grid reached = do
  one <- unsafeRead grid (from pair)
  other <- unsafeRead grid (to pair)
  if one /= 0 || other /= 0
    then pure Nothing
    else do
      unsafeWrite grid (from pair) 1
      unsafeWrite reached 0 (from pair)
      spread 0 1
  where
    spread :: Int -> Int -> IO (Maybe [Int])
    spread !at !end = do
      goal <- unsafeRead grid (to pair)
      if goal /= 0
        then Just <$> back (to pair) [to pair]
        else
          if at == end
            then pure Nothing
            else do
              point <- unsafeRead reached at
              distance <- unsafeRead grid point
              let visit :: Int -> Int -> IO Int
                  visit !count there = do
                    value <- unsafeRead grid there
                    if value == 0
                      then do
                        unsafeWrite grid there (distance + 1)
                        unsafeWrite reached count there
                        pure (count + 1)
                      else pure count
                  !inside = unsafeAt insides point
                  step number there count = if testBit inside number then visit count there else pure count
                  {-# INLINE step #-}
              step 0 (point - 1) end
                >>= step 1 (point + 1)
                >>= step 2 (point - row)
                >>= step 3 (point + row)
                >>= step 4 (point - layer)
                >>= step 5 (point + layer)
                >>= spread (at + 1)
    back :: Int -> [Int] -> IO [Int]
    back !point path
      | point == from pair = pure path
      | otherwise = do
          distance <- unsafeRead grid point
          found <- newIORef point
          besideUntil board point $ \there -> do
            value <- unsafeRead grid there
            if value == distance - 1 then writeIORef found there >> pure True else pure False
          before <- readIORef found
          back before (before : path)

-- | Lays a path, if all its points are free. Whether they are.
lay :: Array Int (TVar Int) -> Pair -> [Int] -> STM Bool
lay grid pair path = check path
  where
    !own = pairNumber pair + 1
    check [] = forM_ path (\point -> writeTVar (unsafeAt grid point) own) >> pure True
    check (point : rest) = do
      there <- readTVar (unsafeAt grid point)
      if there /= 0 then pure False else check rest

labyrinth :: Int -> Maze -> IO ()
labyrinth threads maze = do
  let size = gridSize maze
      !board = newBoard maze
  work <- newTQueueIO
  let given = pairsOf maze
  mapM_ (atomically . writeTQueue work) given
  grid <- listArray (0, size - 1) <$> replicateM size (newTVarIO 0) :: IO (Array Int (TVar Int))
  let copyTo :: IOUArray Int Int -> IO ()
      copyTo copy = times size $ \point -> do
        there <- readTVarIO (unsafeAt grid point)
        unsafeWrite copy point (if there == 0 then 0 else taken)
      route :: Int -> IO [(Pair, [Int])]
      route _ = do
        copy <- newArray (0, size - 1) 0 :: IO (IOUArray Int Int)
        reached <- newArray (0, size - 1) 0 :: IO (IOUArray Int Int)
        let go paths = do
              next' <- atomically (tryReadTQueue work)
              case next' of
                Nothing -> pure paths
                Just pair -> connect pair paths
            connect pair paths = do
              copyTo copy
              found <- search board pair copy reached
              case found of
                Nothing -> go paths
                Just path -> do
                  isLaid <- atomically (lay grid pair path)
                  if isLaid then go ((pair, path) : paths) else connect pair paths
        go []
  paths <- timed (concat <$> together threads route)
  final <- mapM readTVarIO (elems grid)
  wrong <- forM paths $ \(pair, path) -> do
    numbers <- mapM (readTVarIO . unsafeAt grid) path
    let near one other = do
          found <- newIORef False
          besideUntil board one $ \there -> when (there == other) (writeIORef found True) >> pure False
          readIORef found
    connected <- and <$> zipWithM near path (drop 1 path)
    pure (not connected || any (/= pairNumber pair + 1) numbers || head path /= from pair || last path /= to pair)
  copy <- newArray (0, size - 1) 0
  reached <- newArray (0, size - 1) 0
  let connected = Set.fromList (map (pairNumber . fst) paths)
  missed <- forM [pair | pair <- given, Set.notMember (pairNumber pair) connected] $ \pair -> do
    copyTo copy
    isJust <$> search board pair copy reached
  let laid = sum (map (length . snd) paths)
      violations = length (filter id (wrong ++ missed)) + abs (length (filter (/= 0) final) - laid)
  say "paths" (fromIntegral (length paths))
  say "violations" (fromIntegral violations)
  say "checksum" (foldl' (\total' number -> mixed total' (fromIntegral number + 1)) 0 final .&. exact)

main :: IO ()
main = do
  arguments <- getArgs
  case (take 1 arguments, map read (drop 1 arguments)) of
    (["vacation-tree"], [threads, n, q, u, r, t]) -> vacation Trees threads (Mix n q u r t)
    (["vacation-intmap"], [threads, n, q, u, r, t]) -> vacation IntMaps threads (Mix n q u r t)
    (["intruder-tree"], [threads, a, l, n]) -> intruder Trees threads (Traffic a l n)
    (["intruder-intmap"], [threads, a, l, n]) -> intruder IntMaps threads (Traffic a l n)
    (["genome"], [threads, g, l, n]) -> genome threads (Sequence g l n)
    (["kmeans"], [threads, k, n]) -> kmeans threads (Cloud k n)
    (["labyrinth"], [threads, n, z, k]) -> labyrinth threads (Maze n z k)
    _ -> exitWith (ExitFailure 2)
  hFlush stdout
