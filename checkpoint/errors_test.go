package checkpoint_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// failing fails the calls from the n-th on, or the n-th alone, once it is armed.
type failing struct {
	n     int
	on    bool
	err   error
	armed bool
	calls int
	hit   []vfs.Call
}

func (f *failing) before(c vfs.Call) error {
	if !f.armed {
		return nil
	}
	if f.calls++; f.calls == f.n || f.on && f.calls > f.n {
		f.hit = append(f.hit, c)
		return fmt.Errorf("%s %s: %w", c.Op, c.Name, f.err)
	}
	return nil
}

// torn is a disk that writes another byte than the last one of the tensors.
type torn struct{ vfs.FS }

func (d torn) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	if err == nil && strings.HasSuffix(name, "safetensors") {
		f = tornFile{f}
	}
	return f, err
}

type tornFile struct{ vfs.File }

func (f tornFile) Write(p []byte) (int, error) {
	if len(p) == 700 { // one of the tensors
		p = slices.Clone(p)
		p[699] ^= 1
	}
	return f.File.Write(p)
}
