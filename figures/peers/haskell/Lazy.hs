{-# LANGUAGE BangPatterns #-}

-- | Lazy programs as GHC evaluates them, and its sparks.
--
-- usage: Lazy fibs|sieve|quicksort|tree|queens|exp3|tak|wheel|edit|digits SIZE | knapsack ITEMS | par N CUT_OFF ROUNDS | monad-par N CUT_OFF ROUNDS
-- Prints @name value@ lines: the answer that is checked, and milliseconds of CPU time, or
-- nanoseconds of it for a call.
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad.Par (get, runPar, spawn)
import qualified Control.Monad.Par as Par
import Control.Parallel (par, pseq)
import Data.Array
import Data.Bits
import Data.List (foldl', unfoldr)
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Exts (lazy)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, stdout)

-- | The stream of Fibonacci numbers, each of which is a thunk of the two before.
fibs :: Int -> Word64
fibs size = walk size stream `mod` 1000000007
  where
    stream = 0 : 1 : zipWith (+) stream (drop 1 stream)
    walk :: Int -> [Word64] -> Word64
    walk 0 (x : _) = x
    walk n (x : xs) = x `seq` walk (n - 1) xs
    walk _ [] = 0

sieve :: Int -> Word64
sieve size = primes [2 ..] !! (size - 1)
  where
    primes :: [Word64] -> [Word64]
    primes (p : xs) = p : primes (filter (\n -> n `mod` p /= 0) xs)
    primes [] = []

-- | The table of the best values, each entry of which is a thunk of two entries above.
knapsack :: Int -> Word64
knapsack items = table ! (items, capacity)
  where
    capacity = 5000
    table = listArray ((0, 0), (items, capacity)) [best i w | i <- [0 .. items], w <- [0 .. capacity]]
    best :: Int -> Int -> Word64
    best 0 _ = 0
    best i w
      | w < weight = without
      | otherwise = max without (value + table ! (i - 1, w - weight))
      where
        without = table ! (i - 1, w)
        weight = 1 + i * 7919 `mod` 97
        value = fromIntegral (10 + i * 104729 `mod` 89)

quicksort :: Int -> Word64
quicksort size = mix 1 0 (sorted numbers)
  where
    numbers = unfoldr step (size, 1)
    step :: (Int, Word64) -> Maybe (Word64, (Int, Word64))
    step (0, _) = Nothing
    step (left, n) = Just (n `shiftR` 40, (left - 1, n * 6364136223846793005 + 1442695040888963407))
    sorted [] = []
    sorted (p : xs) = sorted (filter (< p) xs) ++ p : sorted (filter (>= p) xs)
    mix :: Word64 -> Word64 -> [Word64] -> Word64
    mix _ !mixed [] = mixed
    mix !at !mixed (n : ns) = mix (at + 1) (mixed + n * at) ns

data Tree = Leaf | Node Tree Tree

grown :: Int -> Tree
grown 0 = Leaf
grown depth = Node (grown (depth - 1)) (grown (depth - 1))
{-# NOINLINE grown #-}

leaves :: Tree -> Word64
leaves Leaf = 1
leaves (Node left right) = leaves left + leaves right
{-# NOINLINE leaves #-}

queens :: Int -> Word64
queens size = go 0 0
  where
    go :: Int -> Word64 -> Word64
    go rows board
      | rows == size = 1
      | otherwise = sum [go (rows + 1) (board `shiftL` 4 .|. fromIntegral c) | c <- keep safe (columns size)]
      where
        safe column = and [apart (fromIntegral (board `shiftR` (4 * back) .&. 15)) back | back <- [0 .. rows - 1]]
          where
            apart queen back = queen /= column && abs (queen - column) /= back + 1

-- | The columns, as a list that is there: it is not fused with its consumers.
columns :: Int -> [Int]
columns size = [0 .. size - 1]
{-# NOINLINE columns #-}

keep :: (Int -> Bool) -> [Int] -> [Int]
keep = filter
{-# NOINLINE keep #-}

data Nat = Z | S Nat

-- | 3 to the power of the size, in numbers of lazy successors.
exp3 :: Int -> Word64
exp3 size = count 0 (power (number 3) size)
  where
    number :: Int -> Nat
    number 0 = Z
    number n = S (number (n - 1))
    add Z b = b
    add (S a) b = S (add a b)
    multiply Z _ = Z
    multiply (S a) b = add b (multiply a b)
    power _ 0 = S Z
    power x n = multiply x (power x (n - 1))
    count :: Word64 -> Nat -> Word64
    count !n Z = n
    count !n (S a) = count (n + 1) a

-- | Takeuchi's function, the last argument of which is evaluated when it is needed: by 'lazy' it is not found to be
-- strict.
tak :: Int -> Int -> Int -> Int
tak x y z
  | x <= y = lazy z
  | otherwise = tak (tak (x - 1) y z) (tak (y - 1) z x) (tak (z - 1) x y)

wheel :: Int -> Word64
wheel size = primes 0 !! (size - 1)

-- | The primes. Those that divide a candidate come from a list of their own, which needs another one. The argument
-- depends on the level, so that the lists are not one.
primes :: Int -> [Word64]
primes level = 2 : 3 : 5 : from 7 (cycle [4, 2, 4, 2, 4, 6, 2, 6])
  where
    base = drop 3 (primes (level + 1))
    from n (gap : gaps)
      | isPrime n = n : from (n + gap) gaps
      | otherwise = from (n + gap) gaps
    from _ [] = []
    isPrime n = n < 49 || all (\p -> n `mod` p /= 0) (takeWhile (\p -> p * p <= n) base)
{-# NOINLINE primes #-}

-- | The edit distance of two words: a table of which each entry is a thunk of one or three others.
edit :: Int -> Word64
edit size = table ! (size, size)
  where
    table = listArray ((0, 0), (size, size)) [entry i j | i <- [0 .. size], j <- [0 .. size]] :: Array (Int, Int) Word64
    entry i 0 = fromIntegral i
    entry 0 j = fromIntegral j
    entry i j
      | letter (i - 1) 1 == letter (j - 1) 2 = table ! (i - 1, j - 1)
      | otherwise = 1 + minimum' (table ! (i, j - 1)) (table ! (i - 1, j)) (table ! (i - 1, j - 1))
    minimum' a b c = min a (min b c)
    letter :: Int -> Word64 -> Word64
    letter place word = ((at * at * word + at) * 6364136223846793005) `shiftR` 62
      where
        at = fromIntegral place

-- | The digits of e behind the point (D. A. Turner), as a number modulo a prime.
digits :: Int -> Word64
digits size = go size 0 (repeat 1)
  where
    go :: Int -> Word64 -> [Word64] -> Word64
    go 0 !answer _ = answer
    go n !answer mixed = case carried 2 (0 : map (10 *) mixed) of
      digit : rest -> go (n - 1) ((10 * answer + digit) `mod` 1000000007) rest
      [] -> answer
    carried :: Word64 -> [Word64] -> [Word64]
    carried base (digit : list@(place : _))
      | place `mod` base + 9 < base = digit + place `div` base : rest
      | otherwise = digit + carry `div` base : rest
      where
        ~(carry : behind) = carried (base + 1) list
        rest = carry `mod` base : behind
    carried _ list = list

calls :: Int -> Word64
calls n = 2 * fib (n + 1) - 1

fib :: Int -> Word64
fib n = if n < 2 then fromIntegral n else fib (n - 1) + fib (n - 2)

fibPar :: Int -> Int -> Word64
fibPar cutOff n
  | n < 2 = fromIntegral n
  | n <= cutOff = fib n
  | otherwise = b `par` (a `pseq` a + b)
  where
    a = fibPar cutOff (n - 1)
    b = fibPar cutOff (n - 2)

fibMonadPar :: Int -> Int -> Par.Par Word64
fibMonadPar cutOff n
  | n < 2 = pure (fromIntegral n)
  | n <= cutOff = pure (fib n)
  | otherwise = do
      b <- spawn (fibMonadPar cutOff (n - 2))
      a <- fibMonadPar cutOff (n - 1)
      (a +) <$> get b

-- | The CPU time of an evaluation, under a name, for an operation of which there are so many.
timed :: String -> Double -> Word64 -> IO ()
timed name operations answer = do
  first <- getCPUTime
  wall <- getMonotonicTimeNSec
  let !evaluated = answer
  end <- getCPUTime
  wallEnd <- getMonotonicTimeNSec
  putStrLn (name ++ " " ++ show (fromIntegral (end - first) / 1e3 / operations))
  putStrLn ("wall_ns " ++ show (fromIntegral (wallEnd - wall) / operations :: Double))
  putStrLn ("answer " ++ show evaluated)

-- | As 'timed', for the calls of a function in so many rounds, whose answers are added. It has been called 8 times before.
-- The argument depends on the round, so that no call is shared with another.
warmed :: (Int -> Word64) -> Int -> Int -> IO ()
warmed program n rounds = do
  mapM_ (\round' -> evaluate (program (n + min 0 round'))) [1 .. 8]
  timed "ns" (fromIntegral rounds * fromIntegral (calls n)) (foldl' (\total round' -> total + program (n + min 0 round')) 0 [1 .. rounds])
{-# NOINLINE warmed #-}

main :: IO ()
main = do
  arguments <- getArgs
  let ms = timed "ms" 1e6
  case arguments of
    ["fibs", size] -> ms (fibs (read size))
    ["sieve", size] -> ms (sieve (read size))
    ["knapsack", size] -> ms (knapsack (read size))
    ["quicksort", size] -> ms (quicksort (read size))
    ["tree", size] -> ms (leaves (grown (read size)))
    ["queens", size] -> ms (queens (read size))
    ["exp3", size] -> ms (exp3 (read size))
    ["tak", size] -> let n = read size in ms (fromIntegral (tak (3 * n) (2 * n) n))
    ["wheel", size] -> ms (wheel (read size))
    ["edit", size] -> ms (edit (read size))
    ["digits", size] -> ms (digits (read size))
    ["par", n, cutOff, rounds] -> warmed (fibPar (read cutOff)) (read n) (read rounds)
    ["monad-par", n, cutOff, rounds] -> warmed (runPar . fibMonadPar (read cutOff)) (read n) (read rounds)
    _ -> exitWith (ExitFailure 2)
  hFlush stdout
