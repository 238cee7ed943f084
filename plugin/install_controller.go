package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
)

// installOptions say what is installed.
type installOptions struct {
	controller bool
	image      string
}

// noImage installs all but the program.
const noImage = "none"

func (o installOptions) objects() ([]*unstructured.Unstructured, error) {
	objects, err := manifests()
	switch {
	case err != nil:
		return nil, err
	case !o.controller && o.image != "":
		return nil, errors.New("--image is that of the controller; give --controller, too")
	case !o.controller:
		return objects, nil
	case o.image == "" || strings.ContainsAny(o.image, " \t\n"):
		return nil, errors.New("name the controller's image with --image=REGISTRY/kubelet-supervisor-controller:VERSION, for there is no public one; --image=none installs all but the program")
	}
	others, err := controllerManifests(o.image)
	return append(objects, others...), err
}

// controllerManifests are the objects of packaging/manifests/controller, the program last.
func controllerManifests(image string) ([]*unstructured.Unstructured, error) {
	objects, err := readManifests(packaging.ControllerManifests, "manifests/controller/*.yaml")
	if err != nil {
		return nil, err
	}
	isProgram := func(object *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Deployment", "PodDisruptionBudget", "Service"}, object.GetKind())
	}
	var rest, program []*unstructured.Unstructured
	for _, object := range objects {
		if !isProgram(object) {
			rest = append(rest, object)
			continue
		}
		if object.GetKind() == "Deployment" {
			if err := setImage(object, image); err != nil {
				return nil, err
			}
		}
		program = append(program, object)
	}
	if image == noImage {
		return rest, nil
	}
	return append(rest, program...), nil
}

func setImage(deployment *unstructured.Unstructured, image string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, is, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || !is || len(containers) != 1 {
		return fmt.Errorf("the manifest of Deployment %s has not one container", deployment.GetName())
	}
	container, is := containers[0].(map[string]any)
	if !is {
		return fmt.Errorf("the manifest of Deployment %s has no container", deployment.GetName())
	}
	container["image"] = image
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}
