package pjrt

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func BenchmarkHostBuffer(b *testing.B) {
	for _, size := range []int{4, 1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d := openCPU(b, 1).Devices()[0]
			a := Array{Shape: Shape{Uint8, []int{size}}, Data: make([]byte, size)}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				buffer, err := d.Put(a)
				if err == nil {
					err = buffer.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestShare(t *testing.T) {
	c := openCPU(t, 1)
	data := aligned(4096)
	data[7] = 9
	released := make(chan struct{}, 2)
	b, err := c.Devices()[0].Share(Array{Shape: Shape{Uint8, []int{len(data)}}, Data: data}, func() { released <- struct{}{} })
	require.NoError(t, err)
	view, err := b.View()
	require.NoError(t, err)
	assert.Same(t, &data[0], &view.Data[0], "it was copied")
	require.NoError(t, view.Close())
	runtime.GC()
	assert.Empty(t, released, "released while the buffer lives")
	require.NoError(t, b.Close())
	select {
	case <-released:
	case <-time.After(5 * time.Second):
		t.Fatal("never released")
	}
	assert.Empty(t, released, "released twice")
}

func TestView(t *testing.T) {
	c := openCPU(t, 2)
	b := put(t, c.Devices()[0], Int32, []int32{1, 2, 3, 4}, 2, 2)
	view, err := b.View()
	require.NoError(t, err)
	require.NoError(t, b.Close(), "the view keeps the memory")
	assert.Equal(t, Bytes([]int32{1, 2, 3, 4}), view.Data)
	require.NoError(t, view.Close())
	require.ErrorIs(t, view.Close(), ErrClosed)
	assert.Zero(t, Live().Buffers)

	other := put(t, c.Devices()[0], Int32, []int32{5})
	copied, err := other.CopyTo(c.Devices()[1])
	require.NoError(t, err)
	assert.Same(t, c.Devices()[1], copied.Device())
	assert.Equal(t, []int32{5}, fetch[int32](t, copied, 1))
	size, err := copied.Size()
	require.NoError(t, err)
	assert.EqualValues(t, 4, size)
}

func TestBusy(t *testing.T) {
	c := openCPU(t, 1)
	call, state := stateCall(t, c, 2, 4)
	view, err := state[1].View()
	require.NoError(t, err)
	_, err = call.Run()
	require.ErrorIs(t, err, ErrBusy, "the run would replace what is looked at")
	assert.Contains(t, err.Error(), "argument 1")
	require.NoError(t, view.Close())
	_, err = call.Run()
	require.NoError(t, err)
	require.NoError(t, call.Set(0, 1, state[0]))
	_, err = call.Run()
	require.ErrorIs(t, err, ErrBusy, "one buffer in two places that are replaced")
	assert.Equal(t, []float32{1, 1, 1, 1}, fetch[float32](t, state[0], 4), "nothing was done")
}

// R21: several goroutines read one buffer by copies and by views. The plugin does not guard its list of readers:
// without lazo's lock, freeing the buffer ended the process.
func TestR21_readersOfOneBuffer(t *testing.T) {
	c := openCPU(t, 1)
	d := c.AddressableDevices()[0]
	const rounds, readers, reads = 10, 8, 500
	data := make([]byte, 4*256)
	for range rounds {
		b, err := d.Put(Array{Shape: Shape{Float32, []int{256}}, Data: data})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range readers {
			wg.Go(func() {
				for range reads {
					if i%2 == 0 {
						if err := b.ToHost(make([]byte, len(data))); err != nil {
							t.Error(err)
						}
						continue
					}
					v, err := b.View()
					if err == nil {
						err = v.Close()
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, b.Close())
	}
	t.Logf("R21: %d buffers, each read %d times by each of %d: no crash", rounds, reads, readers)
}

// R21: an object closed during a garbage collection is closed once, by Close and not first by the collector.
func TestR21_closedUnderTheCollector(t *testing.T) {
	c := openCPU(t, 1)
	b, err := c.AddressableDevices()[0].Put(Array{Shape: Shape{Float32, []int{256}}, Data: make([]byte, 4*256)})
	require.NoError(t, err)
	done := make(chan struct{})
	var wg, collecting sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	for range 8 {
		wg.Go(func() {
			for range 4000 {
				v, err := b.View()
				if err == nil {
					err = v.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(done)
	collecting.Wait()
	require.NoError(t, b.Close())
}
