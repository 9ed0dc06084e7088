// Package store keeps the values of a managed state ([Store]) and decides who may use them ([Access]).
package store
