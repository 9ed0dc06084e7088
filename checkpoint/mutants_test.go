package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
)

// Behaviours that mutants showed to be untested.

var errStore = errors.New("the service is away")

// troubled is a store in memory with trouble.
type troubled struct {
	memstore.Memory
	garbled string // the end of keys whose objects lose a bit on their way
	delete  error
}

func (s *troubled) Put(ctx context.Context, key string, write func(io.Writer) error) error {
	return s.Memory.Put(ctx, key, func(w io.Writer) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if s.garbled != "" && strings.HasSuffix(key, s.garbled) {
			b.Bytes()[b.Len()-1] ^= 1
		}
		_, err := w.Write(b.Bytes())
		return err
	})
}

func (s *troubled) Delete(ctx context.Context, key string) error {
	if s.delete != nil {
		return s.delete
	}
	return s.Memory.Delete(ctx, key)
}

func openTroubled(t *testing.T, s *troubled) *checkpoint.Folder {
	options := checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{{Last: 1}}, ReadBack: true}
	f, err := checkpoint.OpenStore(t.Context(), s, "store", options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}
