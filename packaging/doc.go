// Package packaging has the scripts that make deb, rpm, image and archives, and tests of them. What is applied to a cluster is in deploy.
package packaging
