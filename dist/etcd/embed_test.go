package etcd

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lazo-ml/lazo/dist"
)

// A client without the password of an embedded server is refused.
func TestEmbed_asksForItsPassword(t *testing.T) {
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	store, err := Embed(t.Context(), job)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), "k", []byte("v")))
	stranger, err := clientv3.New(clientv3.Config{Endpoints: store.at.Endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	_, err = stranger.Get(t.Context(), "", clientv3.WithPrefix())
	require.ErrorContains(t, err, "user name is empty")
	require.NoError(t, stranger.Close())
	require.NoError(t, store.Close())
}
