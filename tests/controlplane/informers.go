//go:build !servers

package main

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A filledInformer has all its objects from the start and passes them to each handler while the handler is being
// added. A scheduler that is built on such informers is complete as soon as it is built, without a running informer.
type filledInformer struct {
	cache.SharedIndexInformer
	objects []runtime.Object
}

// filledFactory holds informers of every kind that is read; those of other kinds stay empty.
func filledFactory(client kubernetes.Interface, objects []runtime.Object) (informers.SharedInformerFactory, error) {
	byType := map[reflect.Type][]runtime.Object{}
	for _, object := range objects {
		byType[reflect.TypeOf(object)] = append(byType[reflect.TypeOf(object)], object)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	for kind := range strategies {
		informer, err := newFilledInformer(kind, byType[kind])
		if err != nil {
			return nil, err
		}
		example := reflect.New(kind.Elem()).Interface().(runtime.Object)
		factory.InformerFor(example, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return informer
		})
	}
	return factory, nil
}

func newFilledInformer(kind reflect.Type, objects []runtime.Object) (*filledInformer, error) {
	example := reflect.New(kind.Elem()).Interface().(runtime.Object)
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, example, 0, indexers)
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return nil, err
		}
	}
	return &filledInformer{informer, objects}, nil
}

func (informer *filledInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range informer.objects {
		handler.OnAdd(object, true)
	}
	return informer.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
}

func (informer *filledInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return informer.AddEventHandler(handler)
}

func (informer *filledInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return informer.AddEventHandler(handler)
}

func (informer *filledInformer) HasSynced() bool {
	return true
}
