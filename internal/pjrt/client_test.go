package pjrt

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clients of one job find each other by the store, also from the plugin's own threads. A client that started earlier
// finds later values.
func TestKeyValueStore_joinsClients(t *testing.T) {
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	for _, again := range []string{"", "1"} {
		if again != "" {
			t.Setenv("LAZO_FAKE_AGAIN", again)
		}
		before := Live()
		store := &mapStore{values: map[string][]byte{}}
		const nodes = 3
		var clients [nodes]*Client
		var errs [nodes]error
		var group sync.WaitGroup
		for i := range nodes {
			group.Go(func() {
				clients[i], errs[i] = p.NewClient(map[string]any{"node_id": int64(i), "num_nodes": int64(nodes)}, store)
			})
		}
		group.Wait()
		for i, c := range clients {
			require.NoError(t, errs[i])
			assert.Equal(t, i, c.ProcessIndex())
			require.Len(t, c.Devices(), 2*nodes)
			var own []int
			for _, d := range c.AddressableDevices() {
				assert.Equal(t, i, d.ProcessIndex())
				own = append(own, d.ID())
			}
			assert.Equal(t, []int{2 * i, 2*i + 1}, own)
		}
		assert.Equal(t, map[string]int{"": 0, "1": nodes}[again], store.refused)
		for _, c := range clients {
			require.NoError(t, c.Close())
		}
		assert.Equal(t, before, Live())
		left, _, _ := fakeState(t, p)
		assert.Zero(t, left)
	}
}
