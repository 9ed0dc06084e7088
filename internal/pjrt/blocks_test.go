package pjrt

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mib = 1 << 20

// openKept returns a client of the CPU plugin with KeepBlocks and no kept blocks.
func openKept(t *testing.T) *Client {
	t.Helper()
	c := openCPU(t, 1)
	require.NoError(t, c.Plugin().KeepBlocks())
	FreeBlocks()
	require.Zero(t, countBlocks().Kept)
	return c
}

// putBytes makes a buffer of size MiB, with the mark in its first and last byte.
func putBytes(t *testing.T, c *Client, size int, mark byte) *Buffer {
	t.Helper()
	data := make([]byte, size*mib)
	data[0], data[len(data)-1] = mark, mark
	b, err := c.AddressableDevices()[0].Put(Array{Shape: Shape{Uint8, []int{len(data)}}, Data: data})
	require.NoError(t, err)
	return b
}

func closeAll(t *testing.T, buffers ...*Buffer) {
	t.Helper()
	for _, b := range buffers {
		require.NoError(t, b.Close())
	}
}

// pageFaults returns the number of pages that the process touched for the first time.
func pageFaults(t *testing.T) int64 {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Minflt
}

// Each run needs 64 MiB for a value between two products that XLA does not fuse.
func TestKeepBlocks_runsTouchNoNewPages(t *testing.T) {
	c := openKept(t)
	e := compile(t, c, `module @blocks { func.func public @main(%x: tensor<4096x8xf32>) -> tensor<8x8xf32> {
  %square = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<4096x8xf32>, tensor<4096x8xf32>) -> tensor<4096x4096xf32>
  %rows = stablehlo.dot_general %square, %x, contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096x8xf32>) -> tensor<4096x8xf32>
  %y = stablehlo.dot_general %x, %rows, contracting_dims = [0] x [0] : (tensor<4096x8xf32>, tensor<4096x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32> } }`, CompileOptions{})
	device := c.AddressableDevices()[0]
	x := put(t, device, Float32, make([]float32, 4096*8), 4096, 8)
	run := func() {
		execution, err := e.Execute([][]*Buffer{{x}}, ExecuteOptions{})
		require.NoError(t, err)
		require.NoError(t, execution.Await())
		require.NoError(t, execution.Close())
	}
	const runs, pages = 20, 64 * mib / 4096
	run()
	run()
	before, touched := countBlocks(), pageFaults(t)
	for range runs {
		run()
	}
	after := countBlocks()
	touched = (pageFaults(t) - touched) / runs
	fmt.Printf("%d runs: %d blocks made, %d reused, %d pages touched a run, of %d\n", runs, after.Made-before.Made, after.Reused-before.Reused, touched, pages)
	require.GreaterOrEqual(t, after.Reused-before.Reused, uint64(runs-2), "a busy machine may delay a free for longer than a run waits for it")
	require.Less(t, touched, int64(pages/4))
}

func TestKeepBlocks_giveBack(t *testing.T) {
	c := openKept(t)
	for mark := range byte(5) {
		b := putBytes(t, c, 8, mark)
		got := fetch[byte](t, b, 8*mib)
		require.Equal(t, []byte{mark, 0, mark}, []byte{got[0], got[1], got[len(got)-1]}, "what a block held before")
		closeAll(t, b)
	}
	before := countBlocks()
	require.GreaterOrEqual(t, before.Kept, 8*mib)
	require.Less(t, before.Kept, 17*mib, "one block, or two where a free came late")

	small := putBytes(t, c, 6, 1)
	require.Equal(t, before.Reused, countBlocks().Reused, "a block that is a third too large")
	closeAll(t, small)
	for mark := range byte(40) { // the block of 8 MiB is skipped
		closeAll(t, putBytes(t, c, 5, mark))
	}
	require.Less(t, countBlocks().Kept, 8*mib, "a block that nobody takes")

	FreeBlocks()
	require.Zero(t, countBlocks().Kept)
}

func TestKeepBlocks_atMostWhatWasInUse(t *testing.T) {
	c := openKept(t)
	for i, size := range []int{8, 10, 12, 14, 17, 20, 24, 28} { // none fits the next
		closeAll(t, putBytes(t, c, size, byte(i)))
	}
	counts := countBlocks()
	require.Positive(t, counts.Kept)
	require.Less(t, counts.Most, 60*mib, "two where a free came late")
	require.LessOrEqual(t, counts.Kept, counts.Most)
}

func TestKeepBlocks_byManyAtOnce(t *testing.T) {
	c := openKept(t)
	used := countBlocks().Used
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			var held []*Buffer
			for i := range 60 {
				size, mark := 1+r.IntN(4), byte(g*60+i)
				b := putBytes(t, c, size, mark)
				if got := fetch[byte](t, b, size*mib); !assert.Equal(t, []byte{mark, 0, mark}, []byte{got[0], got[1], got[len(got)-1]}) {
					return
				}
				if held = append(held, b); len(held) > 3 {
					at := r.IntN(len(held))
					closeAll(t, held[at])
					held = append(held[:at], held[at+1:]...)
				}
			}
			closeAll(t, held...)
		})
	}
	all.Wait()
	counts := countBlocks()
	require.Equal(t, used, counts.Used, "what was closed is in use no more")
	require.Positive(t, counts.Reused)
	require.LessOrEqual(t, counts.Kept, counts.Most)
}

// A closed client leaves no blocks.
func TestKeepBlocks_closedClient(t *testing.T) {
	c := openKept(t)
	closeAll(t, putBytes(t, c, 8, 1))
	require.Positive(t, countBlocks().Kept)
	require.NoError(t, c.Close())
	require.Zero(t, countBlocks().Kept)
}

// The fake plugin allocates only by calloc, which is not redirected.
func TestKeepBlocks_ofAPluginWithoutMalloc(t *testing.T) {
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	err = p.KeepBlocks()
	require.ErrorIs(t, err, ErrUnimplemented)
	require.ErrorContains(t, err, p.Path())
}
