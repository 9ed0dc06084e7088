package data

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What each stage takes is noted under its name, once.
func TestTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := New(X(make([]float32, 8*2*2*1), 8, 2, 2, 1))
		require.NoError(t, err)
		slow := func(b Batch) (Batch, error) {
			time.Sleep(time.Second)
			b, err := Augment(1, "x", FlipHorizontal())(b)
			return b, err
		}
		set, err = set.MapBatches(slow)
		require.NoError(t, err)
		var stages Stages
		for range 2 { // passes add up
			for b, err := range set.Batches(2, Timed(&stages)).All() {
				require.NoError(t, err)
				require.Equal(t, 2, b.Size)
			}
		}
		times := maps.Collect(stages.All())
		require.Equal(t, map[string]time.Duration{"copy": 0, "augment": 0, "map": 8 * time.Second}, times, "the clock of the test stands in all but the sleep")
		stages.Note("tokenize", time.Minute)
		var names []string
		for name := range stages.All() {
			names = append(names, name)
		}
		require.Equal(t, []string{"copy", "augment", "map", "tokenize"}, names, "in the order of their first notes")
		for b, err := range set.Batches(2, Timed(&stages), Timed(nil)).All() {
			require.NoError(t, err)
			require.Equal(t, 2, b.Size)
		}
		require.Equal(t, 8*time.Second, maps.Collect(stages.All())["map"], "nil notes nothing")
	})
}

// The stages of images are those that an image goes through.
func TestTimed_images(t *testing.T) {
	dir := folder(t, map[string][]byte{"cat/1.png": pngOf(t, ramp(3, 4)), "dog/1.jpg": jpegOf(t, ramp(3, 4)), "dog/2.png": pngOf(t, ramp(2, 2))})
	f, err := OpenImageFolder(dir, ImageFormat{Height: 2, Width: 2, Resize: Stretch})
	require.NoError(t, err)
	set, err := f.Set().MapBatches(Augment(1, "x", FlipHorizontal()))
	require.NoError(t, err)
	var stages Stages
	for _, err := range set.Batches(2, Shuffle(1), Timed(&stages), KeepRemainder()).All() {
		require.NoError(t, err)
	}
	times := maps.Collect(stages.All())
	for _, stage := range []string{"copy", "read", "decode", "resize", "augment"} {
		require.Contains(t, times, stage)
	}
	require.Positive(t, times["decode"])
}
