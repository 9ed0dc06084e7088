package pjrt

// #include "callback.h"
// #include "run.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

type Client struct {
	plugin *Plugin
	ptr    unsafe.Pointer
	name   string
	text   string
	index  int
	all    []*Device
	local  []*Device
	store  *keyValues

	mu     sync.Mutex
	idle   sync.Cond
	closed bool
	freed  chan struct{} // closed when Close has freed the client
	users  int
	first  *object
}

// options are the plugin's, like "cpu_device_count", of type string, int64, []int64, float32 or bool. store, which may
// be nil, connects clients of several processes until Close, if the options ask for it (GPU plugins: "node_id" and
// "num_nodes").
func (p *Plugin) NewClient(options map[string]any, store KeyValueStore) (*Client, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	list, err := cValues(options, &pin)
	if err != nil {
		return nil, err
	}
	c := &Client{plugin: p, freed: make(chan struct{})}
	c.idle.L = &c.mu
	args := C.lazo_Client_Create_Args{create_options: unsafe.SliceData(list), num_options: C.size_t(len(list))}
	if store != nil {
		if c.store, err = newKeyValues(store); err != nil {
			return nil, err
		}
		c.store.give(&args)
	}
	WithoutSignals(func() { err = invoke(p, "Client_Create", p.api.Client_Create, &args) })
	if err != nil {
		c.store.free()
		return nil, err
	}
	c.ptr = args.client
	live.clients.Add(1)
	if err := c.describe(); err != nil {
		if closeErr := c.Close(); closeErr != nil {
			err = fmt.Errorf("%w (and: %w)", err, closeErr)
		}
		return nil, err
	}
	return c, nil
}

func (c *Client) describe() error {
	api := c.plugin.api
	name := C.lazo_Client_PlatformName_Args{client: c.ptr}
	text := C.lazo_Client_PlatformVersion_Args{client: c.ptr}
	index := C.lazo_Client_ProcessIndex_Args{client: c.ptr}
	all := C.lazo_Client_Devices_Args{client: c.ptr}
	local := C.lazo_Client_AddressableDevices_Args{client: c.ptr}
	err := firstError(
		invoke(c.plugin, "Client_PlatformName", api.Client_PlatformName, &name),
		invoke(c.plugin, "Client_PlatformVersion", api.Client_PlatformVersion, &text),
		invoke(c.plugin, "Client_ProcessIndex", api.Client_ProcessIndex, &index),
		invoke(c.plugin, "Client_Devices", api.Client_Devices, &all),
		invoke(c.plugin, "Client_AddressableDevices", api.Client_AddressableDevices, &local),
	)
	if err != nil {
		return err
	}
	c.name, c.text = goString(name.platform_name, name.platform_name_size), goString(text.platform_version, text.platform_version_size)
	c.index = int(index.process_index)
	for _, ptr := range unsafe.Slice(all.devices, int(all.num_devices)) {
		d, err := newDevice(c, ptr)
		if err != nil {
			return err
		}
		c.all = append(c.all, d)
	}
	c.local, err = c.devicesOf(unsafe.Slice(local.addressable_devices, int(local.num_addressable_devices)))
	return err
}

func (c *Client) devicesOf(list []unsafe.Pointer) ([]*Device, error) {
	devices := make([]*Device, len(list))
	for i, ptr := range list {
		for _, d := range c.all {
			if d.ptr == ptr {
				devices[i] = d
			}
		}
		if devices[i] == nil {
			return nil, fmt.Errorf("pjrt: %s: the plugin gave a device that is not in its list of %d", c.name, len(c.all))
		}
	}
	return devices, nil
}

func (c *Client) Plugin() *Plugin { return c.plugin }

func (c *Client) Platform() string { return c.name }

func (c *Client) PlatformVersion() string { return c.text }

func (c *Client) ProcessIndex() int { return c.index }

func (c *Client) Devices() []*Device { return append([]*Device{}, c.all...) }

func (c *Client) AddressableDevices() []*Device { return append([]*Device{}, c.local...) }

// Close closes all objects of the client, waits for running calls, and frees it. A second Close returns after the
// first.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.freed
		return c.closedError()
	}
	c.closed = true
	defer close(c.freed)
	var open []*object
	for o := c.first; o != nil; o = o.next {
		open = append(open, o)
	}
	c.mu.Unlock()
	var first error
	for _, o := range open {
		// Another goroutine may have closed it.
		if err := o.close(); err != nil && !isClosed(err) && first == nil {
			first = err
		}
	}
	c.mu.Lock()
	for c.users > 0 || c.first != nil {
		c.idle.Wait()
	}
	c.mu.Unlock()
	args := C.lazo_Client_Destroy_Args{client: c.ptr}
	first = firstError(first, invoke(c.plugin, "Client_Destroy", c.plugin.api.Client_Destroy, &args))
	c.store.free()
	live.clients.Add(-1)
	trim()
	return first
}

func (c *Client) closedError() error {
	return fmt.Errorf("pjrt: the runtime's client is %w", ErrClosed)
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Client) use() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.closedError()
	}
	c.users++
	return nil
}

func (c *Client) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.idle.Broadcast()
}

func (c *Client) adopt(o *object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if o.next = c.first; o.next != nil {
		o.next.prev = o
	}
	c.first = o
	return true
}

func (c *Client) drop(o *object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		c.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	}
	o.prev, o.next = nil, nil
	if c.closed {
		c.idle.Broadcast()
	}
}
