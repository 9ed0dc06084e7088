package files

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// idx is a file with the given header and whatever elements.
func idx(kind byte, dims []uint32, elements ...byte) []byte {
	file := []byte{0, 0, kind, byte(len(dims))}
	for _, d := range dims {
		file = binary.BigEndian.AppendUint32(file, d)
	}
	return append(file, elements...)
}

func TestReadIDX(t *testing.T) {
	float := func(f float32) []byte { return binary.BigEndian.AppendUint32(nil, math.Float32bits(f)) }
	double := binary.BigEndian.AppendUint64(nil, math.Float64bits(-math.Pi))
	for _, c := range []struct {
		name string
		file []byte
		want data.Array
	}{
		{"bytes", idx(0x08, []uint32{3}, 0, 1, 255), data.Array{Flat: []uint8{0, 1, 255}, Dims: []int{3}}},
		{"signed bytes", idx(0x09, []uint32{3}, 0, 1, 255), data.Array{Flat: []int8{0, 1, -1}, Dims: []int{3}}},
		{"16 bits", idx(0x0B, []uint32{2}, 1, 2, 255, 254), data.Array{Flat: []int16{258, -2}, Dims: []int{2}}},
		{"32 bits", idx(0x0C, []uint32{2}, 0, 0, 1, 2, 255, 255, 255, 254), data.Array{Flat: []int32{258, -2}, Dims: []int{2}}},
		{"floats", idx(0x0D, []uint32{1, 2}, append(float(1.5), float(-0.25)...)...), data.Array{Flat: []float32{1.5, -0.25}, Dims: []int{1, 2}}},
		{"doubles", idx(0x0E, []uint32{1, 1, 1}, double...), data.Array{Flat: []float64{-math.Pi}, Dims: []int{1, 1, 1}}},
		{"three axes", idx(0x08, []uint32{2, 1, 2}, 1, 2, 3, 4), data.Array{Flat: []uint8{1, 2, 3, 4}, Dims: []int{2, 1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := int64(len(c.file) - 4 - 4*len(c.want.Dims))
			for name, file := range map[string][]byte{"plain": c.file, "packed": datatest.Gzip(t, c.file)} {
				got, err := ReadIDX(iotest.OneByteReader(bytes.NewReader(file)), limit)
				require.NoError(t, err, name)
				require.Equal(t, c.want, got, name)
				require.NoError(t, got.Check())

				path := filepath.Join(t.TempDir(), "file")
				require.NoError(t, os.WriteFile(path, file, 0o600))
				got, err = OpenIDX(path)
				require.NoError(t, err, name)
				require.Equal(t, c.want, got, name)
			}
			_, err := ReadIDX(bytes.NewReader(c.file), limit-1)
			require.ErrorIs(t, err, data.ErrLimit)
		})
	}
}

func TestReadIDXOfAnySize(t *testing.T) { // also such as need several pieces
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100_000).Draw(t, "n")
		want := make([]int16, n)
		file := idx(0x0B, []uint32{uint32(n)})
		for i := range want {
			want[i] = int16(i * 31)
			file = binary.BigEndian.AppendUint16(file, uint16(want[i]))
		}
		got, err := ReadIDX(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		require.Equal(t, data.Array{Flat: want, Dims: []int{n}}, got)
	})
}

var malformed = []struct {
	name   string
	file   []byte
	offset int64
	want   string
	is     error
}{
	{"empty", nil, 0, "in the preamble: the file ends too early", io.ErrUnexpectedEOF},
	{"two bytes", []byte{0, 0}, 2, "in the preamble: the file ends too early", io.ErrUnexpectedEOF},
	{"text", []byte("<html>not found</html>"), 0, "not an IDX file: it starts with 3c 68", nil},
	{"magic little-endian", []byte{1, 8, 0, 0, 0, 0, 0, 1, 7}, 0, "not an IDX file", nil},
	{"no axes", idx(0x08, nil), 3, "no axes", nil},
	{"unknown type", idx(0x0A, []uint32{1}, 1), 2, "unknown type of elements 0x0a", nil},
	{"cut in the axes", idx(0x08, []uint32{1, 2})[:10], 10, "in the lengths of the axes", io.ErrUnexpectedEOF},
	{"axes without end", []byte{0, 0, 8, 255, 0, 0, 0, 1}, 8, "in the lengths of the axes", io.ErrUnexpectedEOF},
	{"length 0", idx(0x08, []uint32{2, 0}), 8, "axis 2 of 2 has the length 0", nil},
	{"negative length", idx(0x08, []uint32{math.MaxUint32}, 1), 4, "has the length 4294967295", nil},
	{"huge length", idx(0x08, []uint32{math.MaxInt32}, 1), 4, "more than", data.ErrLimit},
	{"huge type", idx(0x0E, []uint32{math.MaxInt32 / 8}, 1), 4, "more than", data.ErrLimit},
	{"overflow", idx(0x08, []uint32{1 << 30, 1 << 30, 1 << 30}, 1), 4, "more than", data.ErrLimit},
	{"overflow to zero", idx(0x08, []uint32{1 << 30, 1 << 30, 16}, 1), 4, "more than", data.ErrLimit},
	{"overflow to few", idx(0x0E, []uint32{1 << 30, 1 << 30, 2}, 1), 4, "more than", data.ErrLimit},
	{"one byte missing", idx(0x08, []uint32{300}, make([]byte, 299)...), 8 + 299, "in element 300 of 300", io.ErrUnexpectedEOF},
	{"half an element", idx(0x0C, []uint32{2}, make([]byte, 6)...), 8 + 6, "in element 2 of 2", io.ErrUnexpectedEOF},
	{"one byte more", idx(0x08, []uint32{2}, 1, 2, 3), 10, "more bytes follow the 2 elements of dims [2]", nil},
	{"many bytes more", idx(0x08, []uint32{2}, make([]byte, 1<<20)...), 10, "more bytes follow", nil},
}

//lazo:norace
func TestF28_MalformedIDX(t *testing.T) {
	type file struct {
		name   string
		bytes  []byte
		offset int64 // -1: any
		want   string
		is     error
	}
	var files []file
	for _, m := range malformed {
		_, err := ReadIDX(bytes.NewReader(m.file), 1<<20)
		requireFormatError(t, err, m.name, "", m.offset, m.want, m.is)
		is := m.is
		if is == data.ErrLimit { // a plain file's size shows that elements are missing
			is = io.ErrUnexpectedEOF
		}
		files = append(files, file{m.name, m.file, m.offset, m.want, is})
		files = append(files, file{"packed " + m.name, datatest.Gzip(t, m.file), m.offset, m.want, m.is})
	}
	good := idx(0x08, []uint32{4}, 1, 2, 3, 4)
	packed := datatest.Gzip(t, good)
	wrongSum := bytes.Clone(packed)
	wrongSum[len(wrongSum)-8] ^= 1
	wrongMethod := bytes.Clone(packed)
	wrongMethod[2] = 7
	wrongBlock := bytes.Clone(packed)
	wrongBlock[10] = 0xff
	zeros := make([]byte, 62<<20) // more than any file as small as these may take
	bomb := datatest.Gzip(t, idx(0x08, []uint32{uint32(len(zeros))}, zeros...))
	files = append(files,
		file{"gzip header alone", packed[:2], 0, "in the gzip header", io.ErrUnexpectedEOF},
		file{"gzip without data", packed[:10], 0, "in the preamble", io.ErrUnexpectedEOF},
		file{"gzip cut", packed[:len(packed)-9], -1, "ends too early", io.ErrUnexpectedEOF},
		file{"gzip without checksum", packed[:len(packed)-8], 12, "after the elements", io.ErrUnexpectedEOF},
		file{"gzip checksum", wrongSum, 12, "after the elements", gzip.ErrChecksum},
		file{"gzip method", wrongMethod, 0, "in the gzip header", gzip.ErrHeader},
		file{"gzip block", wrongBlock, 0, "in the preamble", nil},
		file{"gzip then rubbish", append(bytes.Clone(packed), "rubbish"...), 12, "after the elements", nil},
		file{"gzip twice", append(bytes.Clone(packed), packed...), 12, "more bytes follow", nil},
		file{"gzip in gzip", datatest.Gzip(t, packed), 0, "it starts with 1f 8b", nil},
		file{"bomb of zeros", datatest.Gzip(t, zeros[:1<<20]), 3, "no axes", nil},
		file{"bomb behind the elements", append(bytes.Clone(packed), bomb...), 12, "more bytes follow", nil},
		file{"bomb of elements", bomb, 4, "more than", data.ErrLimit},
		file{"bomb that is not there", datatest.Gzip(t, idx(0x08, []uint32{20 << 20})), 4, "more than", data.ErrLimit},
	)

	dir := t.TempDir()
	worst := 0.0 // of what a file took to what it may take
	for i, f := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, f.bytes, 0o600))
		var err error
		took := datatest.Allocated(func() { _, err = OpenIDX(path) })
		requireFormatError(t, err, f.name, path, f.offset, f.want, f.is)
		share := float64(took) / float64(2*len(f.bytes)+64<<20)
		require.Less(t, share, 1.0, "%s took %d bytes", f.name, took)
		worst = max(worst, share)
	}

	// Accepted files may have the highest compression ratio, and stay within the bound too.
	tight := datatest.Gzip(t, idx(0x08, []uint32{50 << 20}, zeros[:50<<20]...))
	path := filepath.Join(dir, "tight")
	require.NoError(t, os.WriteFile(path, tight, 0o600))
	var err error
	share := float64(datatest.Allocated(func() { _, err = OpenIDX(path) })) / float64(2*len(tight)+64<<20)
	require.NoError(t, err)
	require.Less(t, share, 1.0)
	worst = max(worst, share)
	t.Logf("%d malformed files: %d typed errors, 0 process deaths, at most %.0f %% of the memory allowed (2 x file + 64 MB)", len(files), len(files), 100*worst)
}

// requireFormatError takes any offset for -1, any cause for nil.
func requireFormatError(t *testing.T, err error, name, path string, offset int64, want string, is error) {
	t.Helper()
	var format *data.FormatError
	require.ErrorAs(t, err, &format, name)
	require.Equal(t, path, format.Path, name)
	require.ErrorContains(t, err, path, name)
	require.ErrorContains(t, err, want, name)
	if offset >= 0 {
		require.Equal(t, offset, format.Offset, name)
	}
	if is != nil {
		require.ErrorIs(t, err, is, name)
	}
}

func TestF28_RandomDamage(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 0))
	good := idx(0x0B, []uint32{5, 3, 2}, make([]byte, 60)...)
	sources := [][]byte{good, datatest.Gzip(t, good)}
	refused := 0
	for i := range randomFiles {
		file := bytes.Clone(sources[i%2])
		for range 1 + random.IntN(4) {
			file[random.IntN(len(file))] = byte(random.Uint32())
		}
		file = file[:len(file)-random.IntN(2)*random.IntN(len(file))]
		if !readsOrRefuses(t, file, 1<<20) {
			refused++
		}
	}
	t.Logf("%d damaged files: %d refused with a typed error, the others valid, 0 process deaths", randomFiles, refused)
	require.Greater(t, refused, randomFiles/2)
}

// readsOrRefuses fails the test unless file gives a valid array within the limit or a FormatError.
func readsOrRefuses(t *testing.T, file []byte, limit int64) (read bool) {
	a, err := ReadIDX(bytes.NewReader(file), limit)
	if err != nil {
		var format *data.FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, data.Array{}, a)
		return false
	}
	require.NoError(t, a.Check())
	require.LessOrEqual(t, int64(binary.Size(a.Flat)), limit)
	return true
}

func FuzzReadIDX(f *testing.F) {
	for _, m := range malformed {
		if len(m.file) < 1<<10 {
			f.Add(m.file)
			f.Add(datatest.Gzip(f, m.file))
		}
	}
	for _, kind := range []byte{0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E} {
		f.Add(idx(kind, []uint32{2, 1}, make([]byte, 2*8)...))
		f.Add(datatest.Gzip(f, idx(kind, []uint32{1}, make([]byte, 8)...)))
	}
	f.Fuzz(func(t *testing.T, file []byte) { readsOrRefuses(t, file, 1<<20) })
}

func TestReadIDXPassesErrorsOn(t *testing.T) {
	broken := errors.New("disk on fire")
	good := idx(0x08, []uint32{4}, 1, 2, 3, 4)
	for name, file := range map[string][]byte{"plain": good, "packed": datatest.Gzip(t, good)} {
		for at := range len(file) {
			_, err := ReadIDX(io.MultiReader(bytes.NewReader(file[:at]), iotest.ErrReader(broken)), 100)
			require.ErrorIs(t, err, broken, "%s at %d", name, at)
			var format *data.FormatError
			require.False(t, errors.As(err, &format), "the file is not at fault")
		}
	}
}

func TestOpenIDXTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenIDX(dir)
	require.ErrorContains(t, err, dir+": is not a regular file (d")
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = OpenIDX(pipe) // would hang
	require.ErrorContains(t, err, "not a regular file")
	_, err = OpenIDX(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), idx(0x08, []uint32{1}, 9), 0o600))
	require.NoError(t, os.Symlink("file", link))
	a, err := OpenIDX(link)
	require.NoError(t, err)
	require.Equal(t, []uint8{9}, a.Flat)
}
