package images

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
)

func pngOf(t require.TestingT, i image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, i))
	return b.Bytes()
}

func jpegOf(t require.TestingT, i image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, i, &jpeg.Options{Quality: 100}))
	return b.Bytes()
}

// ramp is a grey image with values that tell the places.
func ramp(h, w int) *image.Gray {
	i := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			i.SetGray(x, y, color.Gray{uint8(x*37 + y*91)})
		}
	}
	return i
}

func uniform(h, w int, c color.Color) image.Image {
	i := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			i.Set(x, y, c)
		}
	}
	return i
}

// The figures of jax.image.resize(…, "linear").
func TestStretchIsThatOfJAX(t *testing.T) {
	for _, row := range []struct {
		h, w, height, width int
		want                []float64
	}{
		{7, 10, 3, 4, []float64{0.39230969548225403, 0.5178487300872803, 0.46184876561164856, 0.41059333086013794, 0.4265073537826538, 0.4470219314098358, 0.5150357484817505, 0.4436405599117279, 0.5005857348442078, 0.44385433197021484, 0.4480896592140198, 0.492793470621109}},
		{3, 4, 5, 6, []float64{0.0, 0.07254902273416519, 0.16928106546401978, 0.26601311564445496, 0.36274510622024536, 0.43529412150382996, 0.14274510741233826, 0.21529413759708405, 0.3120262026786804, 0.4087582230567932, 0.5054901838302612, 0.5780392289161682, 0.35686275362968445, 0.42941176891326904, 0.5261438488960266, 0.6228758692741394, 0.7196078300476074, 0.7921568751335144, 0.570980429649353, 0.64352947473526, 0.6398692727088928, 0.33503255248069763, 0.3313724398612976, 0.4039214849472046, 0.7137255072593689, 0.7862745523452759, 0.7156862020492554, 0.143137127161026, 0.07254902273416519, 0.14509804546833038}},
	} {
		a, err := Read(bytes.NewReader(pngOf(t, ramp(row.h, row.w))), Format{Height: row.height, Width: row.width, Channels: 1, Resize: Stretch})
		require.NoError(t, err)
		require.Equal(t, []int{row.height, row.width, 1}, a.Dims)
		require.InDeltaSlice(t, row.want, a.Flat, 2e-6)
	}
}

func TestReadImage(t *testing.T) {
	red := color.NRGBA{255, 0, 0, 255}
	for _, row := range []struct {
		name   string
		file   []byte
		format Format
		want   []float64
	}{
		{"grey as colours", pngOf(t, uniform(1, 1, color.Gray{51})), Format{Height: 1, Width: 1}, []float64{0.2, 0.2, 0.2}},
		{"red as grey", pngOf(t, uniform(1, 1, red)), Format{Height: 1, Width: 1, Channels: 1}, []float64{0.299}},
		{"half transparent", pngOf(t, uniform(1, 1, color.NRGBA{255, 0, 0, 128})), Format{Height: 1, Width: 1}, []float64{0.502, 0, 0}},
		{"jpeg", jpegOf(t, uniform(8, 8, red)), Format{Height: 1, Width: 1, Resize: Stretch}, []float64{1, 0, 0}},
		{"the middle", pngOf(t, ramp(1, 4)), Format{Height: 1, Width: 2, Channels: 1, Resize: CropCentre}, []float64{37. / 255, 74. / 255}},
		{"the middle of a column", pngOf(t, ramp(3, 1)), Format{Height: 1, Width: 1, Channels: 1, Resize: CropCentre}, []float64{91. / 255}},
	} {
		a, err := Read(bytes.NewReader(row.file), row.format)
		require.NoError(t, err, row.name)
		require.InDeltaSlice(t, row.want, a.Flat, 0.006, row.name)
	}
	for size := 1; size < 40; size++ { // a uniform image stays so, at any size
		a, err := Read(bytes.NewReader(pngOf(t, uniform(13, 7, red))), Format{Height: size, Width: 41 - size, Resize: Resize(1 + size%2)})
		require.NoError(t, err)
		for i, v := range a.Flat.([]float32) {
			require.InDelta(t, []float64{1, 0, 0}[i%3], v, 1e-5)
		}
	}
}

func folder(t *testing.T, files map[string][]byte) string {
	dir := t.TempDir()
	for name, file := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), file, 0o600))
	}
	return dir
}

func TestImageFolder(t *testing.T) {
	grey := func(v uint8) []byte { return pngOf(t, uniform(2, 2, color.Gray{v})) }
	dir := folder(t, map[string][]byte{
		"dog/b.PNG": grey(204), "cat/1.png": grey(0), "cat/2.png": grey(51), "cat/.hidden": nil,
		"dog/a.jpeg": jpegOf(t, uniform(2, 2, color.Gray{102})),
	})
	f, err := Open(dir, Format{Height: 2, Width: 2, Channels: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"cat", "dog"}, f.Classes("y"))
	require.Equal(t, 4, f.Len())
	var whole []data.Batch
	for b, err := range data.Rebatch(f.Batches(1).All(), 4, data.Dropped) {
		require.NoError(t, err)
		whole = append(whole, b)
	}
	require.Len(t, whole, 1)
	x := whole[0].Fields[0]
	require.Equal(t, []int{4, 2, 2, 1}, x.Array.Dims)
	for i, v := range x.Array.Flat.([]float32) {
		require.InDelta(t, []float64{0, 0.2, 0.4, 0.8}[i/4], v, 0.005)
	}
	y := data.Y([]int32{0, 0, 1, 1}, 4)
	y.Classes = []string{"cat", "dog"}
	require.Equal(t, y, whole[0].Fields[1])

	// The same shuffled, and resumed.
	pipeline := func(position int64) (all []data.Batch) {
		for b, err := range data.Take(f.Batches(2, data.Shuffle(1)).From(position), 4-position) {
			require.NoError(t, err)
			all = append(all, b)
		}
		return all
	}
	require.Len(t, pipeline(0), 4)
	require.Equal(t, pipeline(0)[3:], pipeline(3))

	// A split reads only its own images, and a further function runs after the reading.
	_, test, err := f.Split(0.5, 0, data.Stratified("y"))
	require.NoError(t, err)
	test, err = test.MapBatches(data.OnField("x", func(a data.Array) (data.Array, error) {
		return data.Array{Flat: []float32{a.Flat.([]float32)[0]}, Dims: []int{1}}, nil
	}))
	require.NoError(t, err)
	require.True(t, test.Mapped())
	for b, err := range test.Batches(1).All() {
		require.NoError(t, err)
		require.Equal(t, []int{1}, b.Fields[0].Array.Dims)
	}
}

func TestImageFolderRefuses(t *testing.T) {
	small := pngOf(t, ramp(1, 1))
	format := Format{Height: 1, Width: 1}
	for name, row := range map[string]struct {
		files  map[string][]byte
		format Format
		want   string
	}{
		"no classes":   {nil, format, "there are no images"},
		"a file":       {map[string][]byte{"a.png": small}, format, "a.png is not a folder"},
		"another file": {map[string][]byte{"a/x.txt": nil}, format, "a/x.txt is not an image"},
		"empty class":  {map[string][]byte{"a/.x": nil, "b/1.png": small}, format, "the class a has no images"},
		"no size":      {nil, Format{}, "0 x 0 pixels"},
		"channels":     {nil, Format{Height: 1, Width: 1, Channels: 2}, "2 channels, expected 1 or 3"},
		"policy":       {nil, Format{Height: 1, Width: 1, Resize: 9}, "unknown policy Resize(9)"},
		"pixels":       {nil, Format{Height: 1, Width: 1, MaxPixels: -1}, "MaxPixels is -1"},
	} {
		dir := folder(t, row.files)
		_, err := Open(dir, row.format)
		require.ErrorContains(t, err, row.want, name)
		require.ErrorContains(t, err, "images: open "+dir, name)
	}
	_, err := Open(filepath.Join(t.TempDir(), "none"), format)
	require.ErrorIs(t, err, os.ErrNotExist)

	// Links that lead out, and pipes that would hang.
	outside := folder(t, map[string][]byte{"secret.png": small})
	dir := folder(t, map[string][]byte{"a/1.png": small})
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.png"), filepath.Join(dir, "a", "2.png")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "a", "3.png"), 0o600))
	f, err := Open(dir, format)
	require.NoError(t, err)
	var errs []error
	for _, err := range f.Batches(1).All() {
		errs = append(errs, err)
	}
	require.Len(t, errs, 3)
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "2.png: ")
	require.ErrorContains(t, errs[1], "path escapes")
	require.ErrorContains(t, errs[2], "3.png: not a regular file")
}

// pngHeader is a PNG file with a custom header and an empty body.
func pngHeader(w, h uint32, depth, kind, interlace byte) []byte {
	chunk := func(name string, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		named := append([]byte(name), body...)
		return binary.BigEndian.AppendUint32(append(b, named...), crc32.ChecksumIEEE(named))
	}
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	ihdr = append(ihdr, depth, kind, 0, 0, interlace)
	file := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", ihdr)...)
	file = append(file, chunk("IDAT", []byte{0x78, 0x9c, 0, 0})...)
	return append(file, chunk("IEND", nil)...)
}

func malformedImages(t require.TestingT) map[string][]byte {
	good, photo := pngOf(t, ramp(20, 20)), jpegOf(t, ramp(20, 20))
	badSum := bytes.Clone(good)
	badSum[29] ^= 1
	huge := bytes.Clone(photo)
	at := bytes.Index(huge, []byte{0xff, 0xc0})
	copy(huge[at+5:], []byte{0xff, 0xff, 0xff, 0xff}) // 65,535 x 65,535
	return map[string][]byte{
		"empty": nil, "text": []byte("<html>not found</html>"), "gif": []byte("GIF89a\x01\x00\x01\x00"),
		"png that overflows": pngHeader(1<<31-1, 1<<31-1, 8, 0, 0),
		"png header alone":   good[:33], "png cut": good[:len(good)-20], "png checksum": badSum,
		"png 0 wide": pngHeader(0, 5, 8, 0, 0), "png without rows": pngHeader(20, 20, 8, 0, 0),
		"png bomb":          pngHeader(1<<20, 1<<20, 8, 0, 0),
		"png wide":          pngHeader(1<<31-1, 1, 16, 6, 0),
		"png 1 too many":    pngHeader(2048, 2049, 16, 6, 0),
		"png at the limit":  pngHeader(2048, 2048, 16, 6, 0),
		"png, interlaced":   pngHeader(2048, 2048, 16, 6, 1),
		"jpeg header alone": photo[:4], "jpeg cut": photo[:len(photo)/2], "jpeg bomb": huge,
	}
}

// A well-formed image takes at most 64 MB, 16 bytes per pixel, and twice the file.
func TestF28_MemoryOfImages(t *testing.T) {
	worst, n := 0.0, 0
	for name, file := range map[string][]byte{
		"small png": pngOf(t, ramp(20, 20)), "small jpeg": jpegOf(t, ramp(20, 20)),
		"png": pngOf(t, uniform(512, 512, color.White)), "jpeg": jpegOf(t, uniform(512, 512, color.White)),
		"grey png at the limit": pngOf(t, ramp(2048, 2048)),
	} {
		header, _, err := image.DecodeConfig(bytes.NewReader(file))
		require.NoError(t, err)
		dir := folder(t, map[string][]byte{"a/a.png": file})
		f, err := Open(dir, Format{Height: 32, Width: 32, Resize: CropCentre})
		require.NoError(t, err)
		took := datatest.Allocated(func() {
			for _, err = range f.Batches(1).All() {
			}
		})
		require.NoError(t, err, name)
		share := float64(took) / float64(2*len(file)+16*header.Width*header.Height+64<<20)
		require.Less(t, share, 1.0, "%s took %d bytes", name, took)
		worst = max(worst, share)
		n++
	}
	t.Logf("F28: %d well-formed images: at most %.0f %% of the memory allowed (2 x file + 16 bytes a pixel + 64 MB)", n, 100*worst)
}

func TestF28_MalformedImages(t *testing.T) {
	worst, n, limited := 0.0, 0, 0
	for name, file := range malformedImages(t) {
		dir := folder(t, map[string][]byte{"a/" + name + ".png": file})
		f, err := Open(dir, Format{Height: 4, Width: 4, Resize: Stretch})
		require.NoError(t, err)
		took := datatest.Allocated(func() {
			for _, err = range f.Batches(1).All() {
			}
		})
		var bad *fs.PathError
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, filepath.Join(dir, "a", name+".png"), bad.Path)
		if name == "png bomb" || name == "png wide" || name == "png 1 too many" || name == "jpeg bomb" {
			require.ErrorIs(t, err, data.ErrLimit, name)
			require.ErrorContains(t, err, "more than 4194304 in all (set Format.MaxPixels)")
			require.Less(t, took, uint64(1<<20), name)
			limited++
		}
		share := float64(took) / float64(2*len(file)+64<<20)
		require.Less(t, share, 1.0, "%s took %d bytes", name, took)
		worst = max(worst, share)
		n++
	}
	t.Logf("F28: %d malformed images: a typed error each (%d refused before any pixel), 0 process deaths, at most %.0f %% of the memory allowed (2 x file + 64 MB)", n, limited, 100*worst)
}

func FuzzReadImage(f *testing.F) {
	for _, file := range malformedImages(f) {
		f.Add(file)
	}
	f.Add(pngOf(f, ramp(3, 5)))
	f.Add(jpegOf(f, uniform(9, 9, color.Gray{100})))
	f.Fuzz(func(t *testing.T, file []byte) {
		for policy := Stretch; policy <= CropCentre; policy++ {
			a, err := Read(bytes.NewReader(file), Format{Height: 3, Width: 2, Resize: policy, MaxPixels: 1 << 12})
			if err != nil {
				require.Equal(t, data.Array{}, a)
				continue
			}
			require.NoError(t, a.Check())
			for _, v := range a.Flat.([]float32) {
				require.True(t, v >= 0 && v <= 1, fmt.Sprint(v))
			}
		}
	})
}

// The stages of images are those that an image goes through.
func TestTimed_images(t *testing.T) {
	dir := folder(t, map[string][]byte{"cat/1.png": pngOf(t, ramp(3, 4)), "dog/1.jpg": jpegOf(t, ramp(3, 4)), "dog/2.png": pngOf(t, ramp(2, 2))})
	f, err := Open(dir, Format{Height: 2, Width: 2, Resize: Stretch})
	require.NoError(t, err)
	set, err := f.MapBatches(Augment(1, "x", FlipHorizontal()))
	require.NoError(t, err)
	var stages data.Stages
	for _, err := range set.Batches(2, data.Shuffle(1), data.Timed(&stages), data.Kept).All() {
		require.NoError(t, err)
	}
	times := maps.Collect(stages.All())
	for _, stage := range []string{"copy", "read", "decode", "resize", "augment"} {
		require.Contains(t, times, stage)
	}
	require.Positive(t, times["decode"])
}

// A folder without one of the classes keeps the labels of the others.
func TestOpen_classesOfAnotherFolder(t *testing.T) {
	grey := pngOf(t, uniform(2, 2, color.Gray{51}))
	dir := folder(t, map[string][]byte{"dog/1.png": grey, "ant/1.png": grey})
	format := Format{Height: 2, Width: 2, Channels: 1, Classes: []string{"cat", "dog", "ant"}}
	f, err := Open(dir, format)
	require.NoError(t, err)
	require.Equal(t, format.Classes, f.Classes("y"))
	y, err := f.Field("y")
	require.NoError(t, err)
	require.Equal(t, []int32{2, 1}, y.Flat)

	format.Classes = []string{"cat", "dog"}
	_, err = Open(dir, format)
	require.ErrorContains(t, err, `the folder ant is not among Format.Classes, ["cat" "dog"]: leave it out, or name its class`)
	format.Classes = []string{"cat", "dog", "cat"}
	_, err = Open(dir, format)
	require.ErrorContains(t, err, `Format.Classes has "cat" twice, expected each class once`)
	format.Classes = []string{"cat"}
	_, err = Read(bytes.NewReader(grey), format)
	require.ErrorContains(t, err, "Format.Classes is only for folders of images")
}
