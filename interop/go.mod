module headgate/interop

go 1.26.0
