// The names of CUDA that CUPTI's headers use. The records hold pointers to them only, so that CUDA itself is not needed.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef int CUdevice, CUdevice_attribute, CUgraphNodeType, CUlaunchAttributeID, CUstreamAttrID;
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraph_st *CUgraph;
typedef struct CUmod_st *CUmodule;
typedef struct CUstream_st *CUstream;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;
typedef struct {
  char bytes[16];
} CUuuid;
typedef struct {
  char bytes[64];
} CUstreamAttrValue;
