// Package store keeps the values of a managed state: the buffers of a strategy, and who may use them at the same time.
//
// - [Store] has the values; its [Access] lists what each gate guards.
// - [Pin] keeps one value for a view or checkpoint while the state changes.
// - [Last] is the last started run. [Remote] is a reported array that is still on the device.
// - [Given] are values for later variables; [Store.Adopt] assigns them or draws values.
package store
