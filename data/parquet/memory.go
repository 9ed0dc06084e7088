package parquet

import (
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// memory subtracts sizes from the file before allocation.
type memory struct{ limit, left int64 }

func (m *memory) take(bytes int64) error {
	if bytes < 0 || bytes > m.left {
		return fmt.Errorf("reading takes more than %d bytes (set Format.Limit, or stream smaller batches): %w", m.limit, data.ErrLimit)
	}
	m.left -= bytes
	return nil
}

// buffer's bytes have any content.
func (m *memory) buffer(b []byte, n int) ([]byte, error) {
	if n <= cap(b) {
		return b[:n], nil
	}
	// The old buffer still counts until it is collected. Growth by half keeps slowly growing pages within the limit.
	if more := max(n, cap(b)+cap(b)/2); m.take(int64(more)) == nil {
		return make([]byte, n, more), nil
	}
	if err := m.take(int64(n)); err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

// grown charges m for n more elements of size bytes, also in taken.
func grown[T any](m *memory, s []T, n int, size int64, taken *int64) ([]T, error) {
	if n <= cap(s)-len(s) {
		return s, nil
	}
	if int64(n) > m.left/size {
		return nil, m.take(m.left + 1)
	}
	bytes := int64(len(s)+n) * size
	if err := m.take(bytes); err != nil {
		return nil, err
	}
	*taken += bytes
	return append(make([]T, 0, len(s)+n), slices.Clip(s)...), nil
}
