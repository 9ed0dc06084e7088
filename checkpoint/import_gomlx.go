package checkpoint

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

const (
	gomlxJSON     = ".json"
	gomlxBin      = ".bin"
	gomlxMagic    = "gomlx_checkpoints" // v0.28 appends an s
	gomlxSlack    = 32 << 20            // expansion of a file beyond twice its size
	gomlxTextSize = 8 << 20
)

// ImportGoMLX reads a checkpoint of GoMLX v0.26 to v0.28. path is its .json file, or a folder, of which the highest
// number counts.
//
// Tensors have the variables' full names ("/model/dense/weights"). Step is the number in the file's name, or 0. GoMLX
// does not save which variables are trainable: use State.Transfer, not State.Restore.
//
// The section "params" has the parameters as [Params], by scope and key ("/optimizer/learning_rate"). Others, like
// lists, are in "params.other" as objects with type and value.
//
// A malformed file is a [*DamagedError]. It wraps [safetensors.ErrLimit] for more than 50,000 variables, 10,000
// parameters, 2 MB of parameters or 8 MB of JSON, or a file that expands to more than maxBytes. Zero means twice the
// file plus 32 MB; files of mostly zeros need more.
func ImportGoMLX(path string, maxBytes int64) (*Checkpoint, error) {
	c, err := importGoMLX(path, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: import GoMLX's %s: %w", path, err)
	}
	return c, nil
}

func importGoMLX(path string, maxBytes int64) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir, base := path, ""
	if !info.IsDir() {
		var ok bool
		if base, ok = strings.CutSuffix(filepath.Base(path), gomlxJSON); !ok {
			return nil, fmt.Errorf("expected a folder, or a file that ends in %s", gomlxJSON)
		}
		dir = filepath.Dir(path)
	}
	fs, err := vfs.OS(dir)
	if err != nil {
		return nil, err
	}
	c, err := importGoMLXFrom(fs, base, maxBytes)
	return c, errors.Join(err, fs.Close())
}

func importGoMLXFrom(fs vfs.FS, base string, maxBytes int64) (*Checkpoint, error) {
	older := ""
	if base == "" {
		all, err := gomlxCheckpoints(fs)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%w: expected files checkpoint-n…%s", ErrNone, gomlxJSON)
		}
		base = all[len(all)-1].base
		if len(all) > 1 {
			older = all[len(all)-2].base
		}
	}
	i := gomlxImport{open: func(path string) (file, error) { return fs.Open(path) }, base: base, maxBytes: maxBytes}
	c, err := i.read()
	if err != nil && older != "" {
		err = fmt.Errorf("%w; to import the checkpoint before it, give the path of %s", err, older+gomlxJSON)
	}
	return c, err
}

type gomlxName struct {
	base string
	n    int64
	step Step
}

var gomlxForm = regexp.MustCompile(`^checkpoint-n(\d+)-\d{8}-\d{6}-(?:initial|step-(\d+))$`)

func parseGoMLXName(base string) (gomlxName, bool) {
	m := gomlxForm.FindStringSubmatch(base)
	if m == nil {
		return gomlxName{}, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return gomlxName{}, false
	}
	step, err := int64(0), error(nil)
	if m[2] != "" {
		step, err = strconv.ParseInt(m[2], 10, 64)
	}
	return gomlxName{base, n, Step(step)}, err == nil
}

func gomlxCheckpoints(fs vfs.FS) ([]gomlxName, error) {
	names, err := fs.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []gomlxName
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, gomlxJSON); ok {
			if n, ok := parseGoMLXName(base); ok {
				all = append(all, n)
			}
		}
	}
	slices.SortFunc(all, func(a, b gomlxName) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.base, b.base)) })
	return all, nil
}

type gomlxImport struct {
	open     opener
	base     string
	maxBytes int64
}

func (i *gomlxImport) read() (*Checkpoint, error) {
	path := i.base + gomlxJSON
	text, err := readSmall(i.open, path, gomlxTextSize)
	if err != nil {
		return nil, err
	}
	m, err := parseGoMLX(text)
	if err != nil {
		return nil, damaged(path, err)
	}
	sections, err := m.sections()
	if err != nil {
		return nil, damaged(path, err)
	}
	file, err := openFile(i.open, i.base+gomlxBin)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(i.readValues(file, m), file.Close()); err != nil {
		return nil, err
	}
	name, _ := parseGoMLXName(i.base)
	return &Checkpoint{Info: Info{Step: name.step, Metrics: map[string]float64{}, Bytes: m.bytes}, Tensors: inOrder(m.tensors), sections: sections}, nil
}

func (i *gomlxImport) readValues(file file, m *gomlxMeta) error {
	path := i.base + gomlxBin
	size, err := file.Size()
	if err != nil {
		return err
	}
	r, zipped, err := gomlxReader(file, size)
	if err != nil {
		return gomlxDamage(path, "", err)
	}
	if form := map[bool]string{true: "gzip", false: "uncompressed"}[zipped]; m.form != "" && m.form != form {
		return damaged(path, fmt.Errorf("the file is %s, %s says %.20q", form, i.base+gomlxJSON, m.form))
	}
	limit := i.maxBytes
	if limit == 0 {
		limit = 2*size + gomlxSlack
	}
	switch {
	case !zipped && m.bytes != size:
		return damaged(path, fmt.Errorf("%d bytes, the variables of %s take %d", size, i.base+gomlxJSON, m.bytes))
	case zipped && m.bytes > limit:
		return damaged(path, fmt.Errorf("the variables take %d bytes, over %d for a file of %d: %w; if you trust it, give %d bytes for maxBytes", m.bytes, limit, size, safetensors.ErrLimit, m.bytes))
	}
	for k := range m.tensors {
		t := &m.tensors[k]
		n, err := t.tensor().ByteSize()
		if err != nil {
			return damaged(path, err)
		}
		ahead := min(n, max(size, gomlxSlack))
		t.Data = make([]byte, ahead)
		got, err := io.ReadFull(r, t.Data)
		if err == nil && n > ahead {
			var rest []byte
			rest, err = io.ReadAll(io.LimitReader(r, n-ahead))
			t.Data = append(t.Data, rest...)
			got = len(t.Data)
		}
		if err == nil && int64(got) < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return gomlxDamage(path, t.Name, fmt.Errorf("after %d of %d bytes: %w", got, n, err))
		}
	}
	// Reading to the end verifies gzip's checksum.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return damaged(path, fmt.Errorf("more bytes than the %d of the variables", m.bytes))
	case err != io.EOF:
		return gomlxDamage(path, "", err)
	}
	return nil
}

func gomlxReader(file io.ReaderAt, size int64) (r io.Reader, zipped bool, err error) {
	raw := io.NewSectionReader(file, 0, size)
	head := make([]byte, min(size, int64(len(gomlxMagic+"s\x04gzip"))))
	if _, err := io.ReadFull(raw, head); err != nil {
		return nil, false, err
	}
	form, ok := bytes.CutPrefix(head, []byte(gomlxMagic))
	if !ok {
		_, err := raw.Seek(0, io.SeekStart)
		return raw, false, err
	}
	rest, ok := bytes.CutPrefix(bytes.TrimPrefix(form, []byte("s")), []byte("\x04gzip"))
	if !ok {
		return nil, false, fmt.Errorf("a compression that GoMLX does not support: %q; %w", form, gzip.ErrHeader)
	}
	if _, err := raw.Seek(-int64(len(rest)), io.SeekCurrent); err != nil {
		return nil, false, err
	}
	r, err = gzip.NewReader(raw)
	return r, true, err
}

func gomlxDamage(path, tensor string, err error) error {
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("it ends too early: %w", io.ErrUnexpectedEOF)
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	return &DamagedError{path, tensor, err}
}
