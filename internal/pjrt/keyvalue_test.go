package pjrt

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failingStore fails or panics on demand.
type failingStore struct {
	mapStore
	err   error
	panic bool
}

func (s *failingStore) TryGet(key string) ([]byte, error) {
	if s.panic {
		panic("a store's own fault")
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.mapStore.TryGet(key)
}

func TestKeyValueStore(t *testing.T) {
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	before := Live()
	rows := []struct {
		name    string
		store   *failingStore
		want    error
		message string
	}{
		{"good", &failingStore{}, nil, ""},
		{"deadline", &failingStore{err: os.ErrDeadlineExceeded}, ErrDeadline, "i/o timeout"},
		{"code", &failingStore{err: &Error{"x", Unavailable, "gone"}}, ErrUnavailable, "gone"},
		{"unknown", &failingStore{err: errors.New("own words")}, nil, "own words"},
		{"panic", &failingStore{panic: true}, nil, "a store's own fault"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			row.store.values = map[string][]byte{}
			c, err := p.NewClient(nil, row.store)
			if row.message == "" {
				require.NoError(t, err)
				assert.Equal(t, "hello", string(row.store.values["fake"]))
				assert.Equal(t, 1500*time.Millisecond, row.store.timeout)
				require.NoError(t, c.Close())
			} else {
				require.Error(t, err)
				assert.Contains(t, err.Error(), row.message)
				if row.want != nil {
					require.ErrorIs(t, err, row.want)
				}
			}
			assert.Equal(t, before, Live())
			left, _, _ := fakeState(t, p)
			assert.Zero(t, left)
		})
	}
}

// mapStore is a KeyValueStore of clients in one process.
type mapStore struct {
	mu      sync.Mutex
	values  map[string][]byte
	timeout time.Duration // timeout of the last Get
	put     chan struct{} // closed by the next Put
	refused int           // puts of existing keys
}

func (s *mapStore) Get(key string, timeout time.Duration) ([]byte, error) {
	late := time.After(timeout)
	for {
		s.mu.Lock()
		s.timeout = timeout
		value, ok := s.values[key]
		if s.put == nil {
			s.put = make(chan struct{})
		}
		put := s.put
		s.mu.Unlock()
		if ok {
			return value, nil
		}
		select {
		case <-put:
		case <-late:
			return nil, ErrDeadline
		}
	}
}

func (s *mapStore) TryGet(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.values[key]; ok {
		return value, nil
	}
	return nil, fmt.Errorf("key %q: %w", key, ErrKeyNotFound)
}

func (s *mapStore) Put(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.values[key]; ok {
		s.refused++
		return fmt.Errorf("key %q: %w", key, ErrKeyExists)
	}
	s.values[key] = value
	if s.put != nil {
		close(s.put)
		s.put = nil
	}
	return nil
}
